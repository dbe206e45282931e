#!/bin/bash
# Build the image of Containerfile, and make a release in it: tools/container.sh [options of buildah build]. Where the
# base image cannot be fetched it is made by debootstrap, so packages of Debian and PyPI are all that is needed (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
base=$(sed -n 's/^FROM \(debian:[a-z]*-slim\)$/\1/p' Containerfile)

for needed in buildah debootstrap; do
    command -v $needed > /dev/null || { echo "No image is built: $needed is not installed (Debian: $needed)."; exit 0; }
done
if ! buildah inspect --type image "$base" > /dev/null 2>&1 && ! buildah pull --quiet "$base" 2> /dev/null; then
    tree=$(mktemp -d)
    suite=${base#debian:}
    debootstrap --variant=minbase "${suite%-slim}" "$tree" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} > "$tree.log" || { cat "$tree.log"; exit 1; }
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$tree" / > /dev/null
    buildah commit --quiet --rm "$container" "$base" > /dev/null
    rm -rf "$tree" "$tree.log"
fi
buildah build --quiet --pull=never --tag shoal "$@" . > /dev/null

# A release of data that comes with shoal, by the user of the image, in a folder of this machine.
data=$(mktemp -d)
chmod 777 "$data"
container=$(buildah from --pull=never shoal)
trap 'buildah rm "$container" > /dev/null; rm -rf "$data"' EXIT
buildah run --volume "$data:/data" "$container" -- shoal demo
buildah run --volume "$data:/data" "$container" -- sh -c 'test "$(id -un)" = shoal && ! touch /opt/shoal/x 2> /dev/null'
find "$data" -name '*.html' | grep -q . || { echo "The image has made no report."; exit 1; }
