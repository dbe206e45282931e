import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
eval "$(_SHOAL_COMPLETE=bash_source shoal)"
compopt() { COMPREPLY+=("$2"); }
proposed() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _shoal_completion shoal; echo ${COMPREPLY[*]}; }
proposed shoal insp
proposed shoal run --th
proposed shoal run jo
proposed shoal collect begin --variant reo
proposed shoal demo --output de
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_values_and_the_names_of_files(tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", PROGRAM], env={**os.environ, "PATH": path}, cwd=tmp_path, capture_output=True, text=True
    )

    # default: bash completes the names of files; dirnames: those of folders.
    assert done.stdout.split() == ["inspect", "--threads", "default", "reopen", "dirnames"], done.stderr
