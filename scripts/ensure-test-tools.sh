#!/bin/sh
# Makes sure that the tests find what they need: Go, a C compiler (the race
# detector is linked with it), the PostgreSQL server programs, Node with npm, and
# Chromium. On Debian and its relatives it installs what is missing; elsewhere it says what
# to install.
set -eu
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null; then
    echo "Go is missing: install Go 1.26 or newer from https://go.dev/dl/" >&2
    exit 1
fi

# missing lists the packages of what is not there.
missing() {
    packages=
    cc=$(go env CC)
    if [ "$(go env GOOS)" = linux ] && ! command -v "${cc%% *}" >/dev/null; then
        packages="gcc libc6-dev"
    fi
    # A server that is already named needs no programs on this machine.
    if [ -z "${PAWL_TEST_POSTGRES:-}" ] && ! CGO_ENABLED=0 go run ./internal/pgtest/with -find >/dev/null 2>&1; then
        packages="${packages:+$packages }postgresql"
    fi
    # MCP servers of others, which tests speak to, are written for Node.
    command -v node >/dev/null || packages="${packages:+$packages }nodejs"
    command -v npm >/dev/null || packages="${packages:+$packages }npm"
    # The pages are tested in a real browser.
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
        [ -d "/Applications/Google Chrome.app" ] || packages="${packages:+$packages }chromium"
}
missing
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "missing: $packages" >&2
    case "$(uname -s)" in
    Darwin) echo "install with: brew install postgresql@17 node && brew install --cask google-chrome" >&2 ;;
    *) echo "install your system's packages of a C compiler, the PostgreSQL server, Node, npm and Chromium" >&2 ;;
    esac
    exit 1
fi

root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "missing: $packages; install as root: apt-get install $packages" >&2
        exit 1
    fi
    root=sudo
fi

# One of several that were started together installs; the others wait, and find
# that there is nothing left to do.
if command -v flock >/dev/null; then
    exec 9>"${TMPDIR:-/tmp}/pawl-test-tools.$(id -u).lock"
    if ! flock -n 9; then
        echo "waiting for another one that installs: $packages" >&2
        flock 9
    fi
    missing
    [ -n "$packages" ] || exit 0
fi

# Debian's package would make a cluster of its own and start it as a service.
# The tests start theirs, so the package is told not to, for this one time.
case " $packages " in
*" postgresql "*)
    snippet=/etc/postgresql-common/createcluster.d/pawl-tests.conf
    forget() { $root rm -f "$snippet"; }
    trap forget EXIT
    $root mkdir -p "$(dirname "$snippet")"
    echo "create_main_cluster = false" | $root tee "$snippet" >/dev/null
    ;;
esac

# apt_get waits for another apt to end, such as the one of unattended upgrades:
# for the lock of packages it does so itself, for that of lists it has to be
# tried again.
wait=600 # seconds
said=
apt_get() {
    tries=$((wait / 5))
    while :; do
        # Not through a pipe: the status is that of apt.
        if output=$($root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=$wait "$@" 2>&1 9>&-); then
            return 0
        fi
        case "$output" in
        *"Could not get lock"* | *"Unable to acquire"* | *"Unable to lock"*) ;;
        *) printf '%s\n' "$output" >&2 && return 1 ;;
        esac
        tries=$((tries - 1))
        if [ "$tries" -le 0 ]; then
            printf '%s\n' "$output" >&2
            echo "another apt has its lock for $wait seconds; end it, or install by hand: $packages" >&2
            return 1
        fi
        [ -n "$said" ] || echo "another apt is at work; waiting for it, up to $wait seconds" >&2
        said=yes
        sleep 5
    done
}

echo "installing: $packages" >&2
# A broken extra source need not stop the packages of the others.
apt_get update || echo "apt-get update had errors; trying to install anyway" >&2
# shellcheck disable=SC2086 # the list is split on purpose
apt_get install -y --no-install-recommends $packages

[ -n "${PAWL_TEST_POSTGRES:-}" ] || CGO_ENABLED=0 go run ./internal/pgtest/with -find >/dev/null
