"""``python -m shoal.cli`` is the command `shoal`."""

from shoal.cli import main

main(prog_name="shoal")
