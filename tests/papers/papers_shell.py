"""What the tests of the papers share: running their command line."""

from click.testing import CliRunner

from papers.__main__ import main


def papers_command(*arguments):
    """Run ``python -m papers`` in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="python -m papers")
