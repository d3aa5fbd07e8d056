#!/usr/bin/env bash
# Sets up what `make demo` and `make test` need on a Debian or Ubuntu machine. Safe to run again and again.
#
#   scripts/setup.sh tools   the virtual environment with the package and the development tools
#   scripts/setup.sh unit    tools, and what the fast tests start: docker-registry, busybox, gnupg, git, systemd's analyzer
#   scripts/setup.sh demo    the virtual environment with the package, an engine, mmdebstrap
#   scripts/setup.sh test    all of these
#
# An engine that answers is used as it is. Only when there is none, Debian's docker.io is installed and started.
# To use a Python of your own: PYTHON=/path/to/python3.12 make demo
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv
STATE=$ROOT/.cache
OLDEST_MINOR=11

say() { printf 'set-up: %s\n' "$*" >&2; }
fail() {
    printf 'set-up: %s\n' "$@" >&2
    exit 5
}

# --- root -------------------------------------------------------------------------------------------------

# Whether commands can run as root, at once or through a sudo that can ask.
may_be_root() {
    [ "$(id -u)" = 0 ] && return 0
    command -v sudo >/dev/null || return 1
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Runs an apt-get command quietly; what it said is shown when it fails.
apt() {
    mkdir -p "$STATE"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" \
        >"$STATE/apt.log" 2>&1 </dev/null || { tail -n 20 "$STATE/apt.log" >&2 && return 1; }
}

APT_UPDATED=
apt_install() {
    command -v apt-get >/dev/null || fail "this machine has no apt-get; install yourself: $*"
    may_be_root || fail "not root, and sudo cannot be used, so these packages cannot be installed: $*" \
        "Install them (apt-get install --no-install-recommends $*), or run this as root."
    if [ -z "$APT_UPDATED" ]; then
        apt update || say "apt-get update had errors; trying with the lists there are"
        APT_UPDATED=yes
    fi
    say "installing $*"
    apt install -y --no-install-recommends "$@"
}

# --- Python -----------------------------------------------------------------------------------------------

new_enough() {
    "$1" -c "import sys; sys.exit(sys.version_info < (3, $OLDEST_MINOR))" 2>/dev/null
}

# Prints a Python that is new enough; fails when there is none.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

ensure_python() {
    local python
    if ! python=$(find_python); then
        [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not Python 3.$OLDEST_MINOR or newer."
        say "python3 here is $(python3 -V 2>/dev/null || echo absent); Python 3.$OLDEST_MINOR or newer is needed"
        apt_install "python3.$OLDEST_MINOR" "python3.$OLDEST_MINOR-venv" ||
            fail "no package of Python 3.$OLDEST_MINOR here; install one and name it: PYTHON=/path make …"
        python=$(find_python) || fail "Python 3.$OLDEST_MINOR was installed but does not run."
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"
    fi
    printf '%s\n' "$python"
}

# Makes the virtual environment; pip runs as the machine has it configured, since it fetches tools, not what
# goes into images. `$1` is "package" or "tools".
ensure_venv() {
    local python stamp wanted
    wanted=$(cat "$ROOT/pyproject.toml" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-64)
    stamp=$VENV/.set-up-$1
    # The tools include the package; a checkout that was moved needs its environment anew.
    if [ -x "$VENV/bin/python" ] && grep -qsxF "$wanted $ROOT" "$stamp" "$VENV/.set-up-tools"; then
        return 0
    fi
    if ! { [ -x "$VENV/bin/python" ] && new_enough "$VENV/bin/python" && "$VENV/bin/python" -m pip -V >/dev/null 2>&1; }; then
        python=$(ensure_python)
        say "making .venv with $python"
        rm -rf "$VENV"
        "$python" -m venv "$VENV"
    fi
    say "installing the package into .venv"
    (
        cd "$ROOT"
        export PIP_DISABLE_PIP_VERSION_CHECK=1
        .venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
        if [ "$1" = tools ]; then
            .venv/bin/python -m pip install --quiet --editable . --group dev
        else
            .venv/bin/python -m pip install --quiet --editable .
        fi
    ) >&2
    printf '%s\n' "$wanted $ROOT" >"$stamp"
}

# --- engine -----------------------------------------------------------------------------------------------

engine_answers() {
    "$VENV/bin/python" - 2>/dev/null <<'PYTHON'
import docker
docker.from_env(timeout=10).ping()
PYTHON
}

# An engine's socket that is there, but not for this user.
engine_refuses_us() {
    [ -z "${DOCKER_HOST:-}" ] && [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]
}

start_engine() {
    if [ -d /run/systemd/system ]; then
        as_root systemctl start docker >&2
    else
        mkdir -p "$STATE"
        say "starting dockerd (log: .cache/dockerd.log, process id: .cache/dockerd.pid)"
        # Its own session, so that it outlives this shell and takes no Ctrl-C meant for a build.
        # shellcheck disable=SC2016 # the inner shell expands it
        as_root sh -c 'setsid dockerd >"$1/dockerd.log" 2>&1 </dev/null & echo $! >"$1/dockerd.pid"' sh "$STATE"
    fi
    for _ in $(seq 120); do
        if engine_answers; then return 0; fi
        # A socket for root alone is an answer too: the caller goes on as root.
        if [ "$(id -u)" != 0 ] && engine_refuses_us; then return 0; fi
        sleep 0.5
    done
    [ ! -f "$STATE/dockerd.log" ] || tail -n 20 "$STATE/dockerd.log" >&2
    fail "dockerd was started but does not answer; its log says why."
}

ensure_engine() {
    if engine_answers || engine_refuses_us; then return 0; fi
    [ -z "${DOCKER_HOST:-}" ] || fail "DOCKER_HOST is $DOCKER_HOST and no engine answers there." \
        "Start that engine, or unset DOCKER_HOST."
    may_be_root || fail "no Docker engine answers, and without root none can be installed." \
        "Install one (apt-get install docker.io iptables) and start it, or run this as root."
    if ! command -v dockerd >/dev/null; then apt_install docker.io iptables; fi
    # Installing may have started it.
    engine_answers || start_engine
}

# --- what to set up ---------------------------------------------------------------------------------------

# Installs the Debian packages whose program is not there: pairs PROGRAM:PACKAGE.
ensure_programs() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    if [ "${#missing[@]}" -gt 0 ]; then apt_install "${missing[@]}"; fi
}

# mmdebstrap checks Debian's signatures with a keyring that Ubuntu does not have by itself.
ensure_bootstrap() {
    ensure_programs mmdebstrap:mmdebstrap
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || apt_install debian-archive-keyring
}

# What tests start or take in; systemd's analyzer judges the units in docs/schedules, none is started.
ensure_stands() {
    ensure_programs docker-registry:docker-registry busybox:busybox-static gpg:gnupg git:git systemd-analyze:systemd
}

# Tests look at the report's page. Ubuntu's package is a snap, which wants a snapd that runs.
ensure_browser() {
    local name
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if command -v "$name" >/dev/null; then return 0; fi
    done
    apt_install chromium || fail "no Chromium here; install it, or Google Chrome."
}

# Tests compile a simulated GPU driver.
ensure_compiler() {
    if ! { command -v gcc && [ -e /usr/include/stdio.h ]; } >/dev/null; then apt_install gcc libc6-dev; fi
}

case "${1:-}" in
tools)
    ensure_venv tools
    ;;
unit)
    ensure_venv tools
    ensure_stands
    ;;
demo)
    ensure_venv package
    ensure_bootstrap
    ensure_engine
    ;;
test)
    ensure_venv tools
    ensure_stands
    ensure_compiler
    ensure_browser
    ensure_bootstrap
    ensure_engine
    ;;
*)
    fail "usage: scripts/setup.sh tools|unit|demo|test"
    ;;
esac

# Where the engine is root's alone, say so by this exit code: the caller runs itself again through sudo.
case "$1" in
demo | test) engine_answers || exit 77 ;;
esac
