"""The rounds use what the tests of the engine disk use."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "engines" / "disk"))
