#!/bin/bash
# Run tests on Linux for arm64, under QEMU: test.sh FOLDER [tests and options of pytest]. The Python there comes from
# Debian, its packages from PyPI, the kernels from Debian's cross-compiler.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
to=$(realpath -m "$1")
host=$root/.venv/bin/python
shift

for needed in qemu-aarch64-static aarch64-linux-gnu-g++ debootstrap python3.11 unzip; do
    if ! command -v $needed > /dev/null; then
        echo "Nothing is run for arm64: $needed is not installed. Debian's packages are qemu-user-static,"
        echo "g++-aarch64-linux-gnu, debootstrap, python3.11 and unzip."
        exit 0
    fi
done
if [ ! -x "$to/python" ]; then
    rm -rf "$to"
    mkdir -p "$to"/{wheels,site}
    # Unpacked, and not installed: no program of the tree runs but Python.
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3 bookworm "$to/tree" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} \
        > "$to/tree.log" || { cat "$to/tree.log"; exit 1; }
    for package in "$to"/tree/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$to/tree"; done
    "$host" -c 'import tomllib; print(*tomllib.load(open("'"$root"'/pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > "$to/needed"
    platforms=(--platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64)
    "$host" -m pip download --quiet --quiet --disable-pip-version-check --dest "$to/wheels" --only-binary=:all: \
        "${platforms[@]}" --python-version 311 --requirement "$to/needed" hypothesis pandas pyreadstat pytest pytest-timeout
    for wheel in "$to"/wheels/*.whl; do unzip -q -o "$wheel" -d "$to/site"; done
    printf '#!/bin/sh\nPYTHONPATH=%s/site exec qemu-aarch64-static -L %s/tree %s/tree/usr/bin/python3.11 "$@"\n' "$to" "$to" "$to" > "$to/python"
    chmod +x "$to/python"
fi
"$root/tools/cross_kernels.sh" "$to" "$here/gcc.cmake" .cpython-311-aarch64-linux-gnu.so > "$to/kernels.log" 2>&1 \
    || { cat "$to/kernels.log"; exit 1; }

rm -rf "$to"/site/shoal "$to"/site/shoal_privacy-*
cp -r "$root/src/shoal" "$to/site/"
cp "$to"/kernels/_kernels.*.so "$to/site/shoal/"
cp -r "$root"/.venv/lib/python3*/site-packages/shoal_privacy-*.dist-info "$to/site/"
cd "$root"
# The same cells, and the same bytes of published files, as on this machine.
"$host" -W ignore tools/same_elsewhere.py > "$to/same-here.json"
"$to/python" -P -W ignore tools/same_elsewhere.py > "$to/same-arm64.json"
diff "$to/same-here.json" "$to/same-arm64.json" || { echo "These cells or files differ from those on this machine."; exit 1; }
echo "$(grep -c : "$to/same-arm64.json") hashes of cells and published files are the same on arm64."
"$to/python" -P -m pytest -p no:cacheprovider -o pythonpath=. "$@"
