#!/bin/bash
# Build the kernels for CPython 3.11 on another system: cross_kernels.sh FOLDER TOOLCHAIN SUFFIX [options of CMake].
# FOLDER/kernels has them afterwards; FOLDER/include are the headers of Python, those of this machine if there are none.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
to=$(realpath "$1") toolchain=$(realpath "$2") suffix=$3
shift 3
older=$(command -v python3.11)

if [ ! -x "$to/host/bin/ninja" ]; then
    "$root/.venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --target "$to/host" cmake ninja nanobind
fi
if [ ! -d "$to/include" ]; then
    cp -rL "$("$older" -c 'import sysconfig; print(sysconfig.get_path("include"))')" "$to/include"
fi
export PYTHONPATH=$to/host
"$to/host/bin/cmake" -G Ninja -S "$root" -B "$to/kernels" -Wno-dev \
    -DCMAKE_MAKE_PROGRAM="$to/host/bin/ninja" -DCMAKE_TOOLCHAIN_FILE="$toolchain" -Dnanobind_DIR="$to/host/nanobind/cmake" \
    -DPython_EXECUTABLE="$older" -DPython_INCLUDE_DIR="$to/include" -DNB_SUFFIX="$suffix" -DNB_SUFFIX_S="$suffix" \
    -DSKBUILD_DATA_DIR="$to/data" "$@"
"$to/host/bin/cmake" --build "$to/kernels" --target _kernels
