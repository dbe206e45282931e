"""The rounds use what the tests of the engine disk and of series use."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("engines/disk", "series")]
collect_ignore = ["spark_stream.py"]  # a command, whose imports are those of the Spark tests
