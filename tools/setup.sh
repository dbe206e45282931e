#!/bin/sh
# Make a virtual environment that holds shoal, editable, built from here: sh tools/setup.sh VENV [pip install options]
# Where the machine lacks something, say what to install. PYTHON and CXX, when set, are used as they are.
set -eu

main() {
    venv=$1
    shift
    check_compiler
    if ! usable "$venv"; then
        python=$(find_python)
        echo "Setting up $venv with $("$python" --version); the first time takes a minute or two."
        "$python" -m venv --clear "$venv"
    else
        echo "Bringing $venv up to date: the sources or their settings have changed."
    fi
    pip_install "$venv" --upgrade pip
    pip_install "$venv" --editable . "$@"
    pwd -P > "$venv/.ready"
}

pip_install() {
    python_in_venv=$1/bin/python
    shift
    "$python_in_venv" -m pip install --quiet --quiet --disable-pip-version-check "$@"
}

# A virtual environment of Python 3.11 or newer that was made here, not moved here.
usable() {
    recent "$1/bin/python" && { [ ! -f "$1/.ready" ] || [ "$(cat "$1/.ready")" = "$(pwd -P)" ]; }
}

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
}

# Debian and Ubuntu ship Python in pieces: venv and the C headers are packages of their own.
complete() {
    "$1" -c 'import ensurepip, os, sys, sysconfig, venv
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2> /dev/null
}

find_python() {
    incomplete=
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.14 python3.13 python3.12 python3.11
    fi
    for name in "$@"; do
        recent "$name" || continue
        if complete "$name"; then
            command -v "$name"
            return
        fi
        incomplete=${incomplete:-$name}
    done
    if [ -n "$incomplete" ]; then
        package=$(basename "$incomplete")
        stop "$("$incomplete" --version) ($(command -v "$incomplete")) comes without its venv module or its C headers; shoal needs both." \
            "  Debian, Ubuntu:  sudo apt install $package-venv $package-dev"
    fi
    stop "shoal needs Python 3.11 or newer, and there is none here. Looked for: $*." \
        "  Debian, Ubuntu:  sudo apt install python3 python3-venv python3-dev" \
        "  macOS:           brew install python, or the installer from python.org" \
        "  elsewhere:       make PYTHON=/path/to/python3 ..."
}

# Export the compiler that was tried, so that it is the one that builds.
check_compiler() {
    # What older libraries lack.
    sample='
#include <algorithm>
#include <memory>
#include <vector>
int main() { std::vector<int> few{2, 1}; std::ranges::sort(few); std::make_unique_for_overwrite<int[]>(2); }'
    for compiler in "${CXX:-c++}" "${CXX:-g++}" "${CXX:-clang++}"; do
        # Not in quotes: CXX may hold a launcher or options, as in "ccache g++".
        if echo "$sample" | $compiler -std=c++20 -x c++ -fsyntax-only - 2> /dev/null; then
            export CXX="$compiler"
            return
        fi
    done
    stop "shoal's kernels are written in C++20, and no compiler here can build them. Tried: ${CXX:-c++, g++, clang++}." \
        "  Debian, Ubuntu:  sudo apt install g++" \
        "  Fedora:          sudo dnf install gcc-c++" \
        "  macOS:           xcode-select --install" \
        "Needed are GCC 11, Clang 13 (Clang 16 with libc++), Xcode 15 or newer. CMake and Ninja come by themselves."
}

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

main "$@"
