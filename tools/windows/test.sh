#!/bin/bash
# Run tests under Wine: test.sh FOLDER [tests and options of pytest]. The Python there and the kernels are made if needed.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
to=$(realpath -m "$1")
shift

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "Nothing is run under Wine: this is not Linux on x86-64."
    exit 0
fi
for needed in /usr/lib/wine/wine64 x86_64-w64-mingw32-g++-posix python3.11 unzip; do
    if ! command -v $needed > /dev/null; then
        echo "Nothing is run under Wine: $needed is not installed. Debian's packages are wine64, g++-mingw-w64-x86-64-posix,"
        echo "python3.11 and unzip."
        exit 0
    fi
done
if [ ! -x "$to/python" ]; then
    echo "Making a Python for Windows in $to; this takes some minutes."
    "$here/python.sh" "$to"
fi
"$root/tools/cross_kernels.sh" "$to" "$here/mingw.cmake" .cp311-win_amd64.pyd \
    -DCMAKE_MODULE_LINKER_FLAGS="-static -L$to/parts" -DPython_LIBRARY="$to/parts/libpython311.dll.a" \
    > "$to/kernels.log" 2>&1 || { cat "$to/kernels.log"; exit 1; }

site=$to/system/Lib/site-packages
rm -rf "$site"/shoal "$site"/shoal_privacy-*
cp -r "$root/src/shoal" "$site/"
cp "$to"/kernels/_kernels.*.pyd "$site/shoal/"
cp -r "$root"/.venv/lib/python3*/site-packages/shoal_privacy-*.dist-info "$site/"
cd "$root"
# The same cells, and the same bytes of published files, as on this machine.
"$root/.venv/bin/python" -W ignore tools/same_elsewhere.py > "$to/same-here.json"
"$to/python" -P -W ignore tools/same_elsewhere.py | tr -d '\r' > "$to/same-windows.json"
diff "$to/same-here.json" "$to/same-windows.json" || { echo "These cells or files differ from those on Linux."; exit 1; }
echo "$(grep -c : "$to/same-windows.json") hashes of cells and published files are the same as on Linux."
# Tracebacks of pytest look for every source file, which takes half a minute under Wine.
"$to/python" -P -m pytest -p no:cacheprovider -o pythonpath=. --tb=native "$@"
