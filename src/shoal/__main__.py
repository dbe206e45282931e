"""Let ``python -m shoal`` do what the command ``shoal`` does."""

from shoal.cli import main

main(prog_name="shoal")
