#!/bin/sh
# A folder for machines without the internet: sh tools/bundle.sh PLATFORM WHEEL [PYTHON]
# PLATFORM: win_amd64, linux_x86_64, linux_aarch64, macos_arm64 or macos_x86_64. WHEEL: that of shoal for it, from
# `make wheel` or the workflow. PYTHON: its version on those machines, 3.13 by default. Needs `make test` first, for uv.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
wheel=$2 python=${3:-3.13}
case $1 in
    win_amd64) system=windows tags="win_amd64" ;;
    linux_x86_64) system=x86_64-manylinux_2_28 tags="manylinux_2_28_x86_64 manylinux_2_17_x86_64 manylinux2014_x86_64 manylinux_2_26_x86_64 manylinux_2_27_x86_64" ;;
    linux_aarch64) system=aarch64-manylinux_2_28 tags="manylinux_2_28_aarch64 manylinux_2_17_aarch64 manylinux2014_aarch64 manylinux_2_26_aarch64 manylinux_2_27_aarch64" ;;
    macos_arm64) system=aarch64-apple-darwin tags="macosx_11_0_arm64 macosx_12_0_arm64 macosx_13_0_arm64 macosx_11_0_universal2" ;;
    macos_x86_64) system=x86_64-apple-darwin tags="macosx_11_0_x86_64 macosx_10_13_x86_64 macosx_12_0_x86_64 macosx_13_0_x86_64 macosx_11_0_universal2" ;;
    *) echo "Unknown platform $1." >&2; exit 2 ;;
esac
[ -f "$wheel" ] || { echo "There is no wheel $wheel." >&2; exit 2; }
bundle=dist/shoal-$1-python$python
rm -rf "$bundle"
mkdir -p "$bundle/wheels"
cp "$wheel" "$bundle/wheels/"

# uv resolves for the other system: pip would take its own for it, and leave out what only Windows needs.
echo polars | .venv/bin/uv pip compile --quiet --no-header --no-annotate --python-platform "$system" \
    --python-version "$python" --extra app --extra excel --extra spss --only-binary :all: \
    --output-file "$bundle/requirements.txt" pyproject.toml -
for tag in $tags; do platforms="${platforms:-} --platform $tag"; done
# shellcheck disable=SC2086  # several words
.venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version "$python" \
    $platforms --dest "$bundle/wheels" --requirement "$bundle/requirements.txt"
echo "shoal-privacy[app,excel,spss]" >> "$bundle/requirements.txt"
(cd "$bundle" && sha256sum wheels/* > SHA256SUMS)

install='-m pip install --disable-pip-version-check --no-index --find-links wheels --requirement requirements.txt'
if [ "$1" = win_amd64 ]; then
    starter="shoal app.cmd" home='%LOCALAPPDATA%\shoal'
    sed 's/$/\r/' > "$bundle/$starter" <<END
@echo off
cd /d "%~dp0"
set HOME_OF_SHOAL=$home
if exist "%HOME_OF_SHOAL%\\installed" goto start
py -$python -m venv --clear "%HOME_OF_SHOAL%" || goto failed
"%HOME_OF_SHOAL%\\Scripts\\python.exe" $install || goto failed
echo %DATE% > "%HOME_OF_SHOAL%\\installed"
:start
"%HOME_OF_SHOAL%\\Scripts\\shoal.exe" app %*
if not errorlevel 1 exit /b 0
:failed
echo shoal could not be started. The lines above say why; README.txt says what is needed.
pause
exit /b 1
END
else
    starter="shoal-app.command" home='~/.local/share/shoal-app'
    cat > "$bundle/$starter" <<END
#!/bin/sh
# Install shoal for this user at the first start, and open it in the browser.
set -eu
cd "\$(dirname "\$0")"
home=\${XDG_DATA_HOME:-\$HOME/.local/share}/shoal-app
if [ ! -f "\$home/installed" ]; then
    python$python -m venv --clear "\$home"
    "\$home/bin/python" $install
    touch "\$home/installed"
fi
exec "\$home/bin/shoal" app "\$@"
END
    chmod +x "$bundle/$starter"
fi
cat > "$bundle/README.txt" <<END
shoal for $1: release of personal data by k-anonymous microaggregation, in the browser of this machine

What is needed    Python $python, from python.org or the software centre. Nothing else, and no internet.
Start             "$starter", by a double click. The first start installs shoal for this user in
                  $home, from the folder "wheels" alone; no right of an administrator is needed.
For all users     An administrator installs it once, in any environment of Python $python:
                  python $install
                  "shoal app" then starts it, "shoal --help" lists the commands.
Check             SHA256SUMS has the digest of each wheel, requirements.txt the versions.
What it does      It answers on this machine alone (127.0.0.1) and opens no connection to another one. It reads the
                  files that the user names, and writes to the folders that the user names. Its history of jobs is in
                  the user's own data folder, readable by that user alone.
Remove            Delete $home.
END
echo "$bundle"
