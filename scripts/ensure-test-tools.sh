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

packages=
cc=$(go env CC)
if [ "$(go env GOOS)" = linux ] && ! command -v "${cc%% *}" >/dev/null; then
    packages="gcc libc6-dev"
fi
# A server that is already named needs no programs on this machine.
if [ -z "${PAWL_TEST_POSTGRES:-}" ] && ! go run ./internal/pgtest/with -find >/dev/null 2>&1; then
    packages="${packages:+$packages }postgresql"
fi
# MCP servers of others, which tests speak to, are written for Node.
command -v node >/dev/null || packages="${packages:+$packages }nodejs"
command -v npm >/dev/null || packages="${packages:+$packages }npm"
# The pages are tested in a real browser.
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    [ -d "/Applications/Google Chrome.app" ] || packages="${packages:+$packages }chromium"
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

# Debian's package would make a cluster of its own and start it as a service.
# The tests start theirs, so the package is told not to, for this one time.
snippet=/etc/postgresql-common/createcluster.d/pawl-tests.conf
forget() { $root rm -f "$snippet"; }
trap forget EXIT
$root mkdir -p "$(dirname "$snippet")"
echo "create_main_cluster = false" | $root tee "$snippet" >/dev/null

echo "installing: $packages" >&2
# A broken extra source need not stop the packages of the others.
$root apt-get update || echo "apt-get update had errors; trying to install anyway" >&2
# shellcheck disable=SC2086 # the list is split on purpose
$root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages

go run ./internal/pgtest/with -find >/dev/null
