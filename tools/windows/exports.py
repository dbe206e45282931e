"""Write what a Python library exports: for an import library, and for python3.dll, which stable modules link to."""

import re
import subprocess
import sys
from pathlib import Path

library, folder = Path(sys.argv[1]), Path(sys.argv[2])
told = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", library], capture_output=True, text=True, check=True).stdout
table = told[told.index("[Ordinal/Name Pointer] Table") :]
names = re.findall(r"^\s*\[\s*\d+\](?: \+base\[\s*\d+\]\s+[0-9a-f]+)? (\S+)\s*$", table, re.MULTILINE)
assert len(names) > 1500, f"{library} exports {len(names)} names only"
for file, lines in {
    f"{library.stem}.def": names,
    "python3.def": [f"{name} = {library.stem}.{name}" for name in names],
}.items():
    head = f"LIBRARY {Path(file).stem}.dll\nEXPORTS\n"
    (folder / file).write_text(head + "\n".join(lines) + "\n", encoding="ascii")
