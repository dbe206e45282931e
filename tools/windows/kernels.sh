#!/bin/bash
# Build the kernels for the Python that python.sh has made: kernels.sh FOLDER
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
to=$(realpath "$1")
older=$(command -v python3.11)

if [ ! -x "$to/host/bin/ninja" ]; then
    "$root/.venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --target "$to/host" cmake ninja nanobind
fi
if [ ! -d "$to/include" ]; then
    cp -rL "$("$older" -c 'import sysconfig; print(sysconfig.get_path("include"))')" "$to/include"
    cp "$here/pyconfig.h" "$to/include/"
    x86_64-w64-mingw32-ar cr "$to/parts/libdl.a"  # CMake links what the Python of this machine is linked to
fi
export PYTHONPATH=$to/host
"$to/host/bin/cmake" -G Ninja -S "$root" -B "$to/kernels" -Wno-dev \
    -DCMAKE_MAKE_PROGRAM="$to/host/bin/ninja" -DCMAKE_TOOLCHAIN_FILE="$here/mingw.cmake" -Dnanobind_DIR="$to/host/nanobind/cmake" \
    -DCMAKE_MODULE_LINKER_FLAGS="-static -L$to/parts" -DPython_EXECUTABLE="$older" -DPython_INCLUDE_DIR="$to/include" -DPython_LIBRARY="$to/parts/libpython311.dll.a" \
    -DNB_SUFFIX=.cp311-win_amd64.pyd -DNB_SUFFIX_S=.pyd -DSKBUILD_DATA_DIR="$to/data" > "$to/kernels.log" 2>&1 || { cat "$to/kernels.log"; exit 1; }
"$to/host/bin/cmake" --build "$to/kernels" --target _kernels
