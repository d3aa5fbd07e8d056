#!/usr/bin/env bash
# Sets up, then runs one thing with the virtual environment first on PATH:
#
#   scripts/run.sh demo             builds and verifies the stack demo-cpu
#   scripts/run.sh test [ARG…]      all tests; arguments go to pytest
#   scripts/run.sh bench            the benchmarks
#
# Where the engine is root's alone and this is not root, it runs itself again through sudo.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
WHAT=${1:-}
cd "$ROOT"

case "$WHAT" in
demo) kind="demo" ;;
test | bench) kind="test" ;;
*)
    echo "usage: scripts/run.sh demo|test|bench" >&2
    exit 2
    ;;
esac

status=0
scripts/setup.sh "$kind" || status=$?
if [ "$status" = 77 ]; then
    if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
        echo "The Docker engine is root's; going on through sudo." >&2
        exec sudo -E -H bash "$ROOT/scripts/run.sh" "$@"
    fi
    echo "A Docker engine is there, but this user may not use it: run this as root, or join the group docker." >&2
    exit 5
fi
[ "$status" = 0 ] || exit "$status"
shift
export PATH="$ROOT/.venv/bin:$PATH"

# A lock names exact Debian packages, and mirrors drop superseded ones: then lock again, as the error says.
demo() {
    local status=0
    stackbuild build --verify demo-cpu || status=$?
    if [ "$status" = 3 ] && stackbuild build demo-cpu 2>&1 | grep -q deb-superseded; then
        echo "demo: the mirror dropped packages that stacks/demo-cpu.lock names, so it is locked again here." >&2
        stackbuild lock --upgrade demo-cpu
        status=0
        stackbuild build --verify demo-cpu || status=$?
    fi
    [ "$status" = 0 ] || exit "$status"
    echo "demo: the image is demo-cpu:latest; the report and the SBOM are in $ROOT/reports/demo-cpu" >&2
}

case "$WHAT" in
demo) demo ;;
test) exec python -m pytest -n 2 "$@" ;;
bench)
    python -m bench.help
    python -m bench.build
    python -m bench.scan
    python -m bench.check
    python -m bench.verify
    python -m bench.page
    python -m bench.diff
    ;;
esac
