#!/bin/sh
# Run tests on kernels that were built with the sanitizers: sh tools/sanitize.sh VENV TESTS...
set -eu

venv=$1
shift
if [ "$(uname -s)" != Linux ]; then
    echo "make sanitize runs on Linux only: elsewhere the sanitizers cannot be loaded ahead of Python." >&2
    exit 1
fi

# The sanitizers must be loaded before anything else, and libstdc++ with them, or they miss what C++ throws.
module=$(ls "$venv"/lib/python3*/site-packages/shoal/_kernels*.so)
preload=$(ldd "$module" | awk '/libasan|libubsan|libstdc\+\+/ { print $3 }' | tr '\n' ' ')

# Python itself leaks on purpose; behind its own allocator the address sanitizer would not see where objects end; and
# what a sanitizer says as it ends the process must not be caught by pytest.
LD_PRELOAD=$preload \
    ASAN_OPTIONS=detect_leaks=0 \
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    PYTHONMALLOC=malloc \
    "$venv/bin/python" -m pytest -rs --capture=sys "$@"
