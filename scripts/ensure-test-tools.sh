#!/bin/sh
# Makes sure that the tests find what they need: Go, a C compiler (the race
# detector is linked with it), the PostgreSQL server programs, Node with npm,
# Python with psycopg and mypy, Chromium, and promtool. On Debian and its relatives it installs what is missing;
# elsewhere it says what to install.
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
    # The client of Python is tested with the driver that applications use, and its
    # types are checked. A Python of one's own may lack the driver that the system's has.
    python3 -c 'import psycopg' 2>/dev/null || /usr/bin/python3 -c 'import psycopg' 2>/dev/null || packages="${packages:+$packages }python3 python3-psycopg"
    command -v mypy >/dev/null || packages="${packages:+$packages }mypy"
    # The pages are tested in a real browser.
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
        [ -d "/Applications/Google Chrome.app" ] || packages="${packages:+$packages }chromium"
    # The alert rules are tested by the program of those who evaluate them. It is
    # in the package of the server, which is not installed: it would be started.
    promtool=
    command -v promtool >/dev/null || [ -x bin/tools/promtool ] || promtool=promtool
}
missing
[ -n "$packages$promtool" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "missing: $packages $promtool" >&2
    case "$(uname -s)" in
    Darwin) echo "install with: brew install postgresql@17 node python mypy prometheus && pip3 install 'psycopg[binary]' && brew install --cask google-chrome" >&2 ;;
    *) echo "install your system's packages of a C compiler, the PostgreSQL server, Node, npm, Python, psycopg, mypy, Chromium and Prometheus (promtool)" >&2 ;;
    esac
    exit 1
fi

root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        [ -z "$packages" ] || { echo "missing: $packages; install as root: apt-get install $packages" >&2 && exit 1; }
    else
        root=sudo
    fi
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
    [ -n "$packages$promtool" ] || exit 0
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

echo "installing: $packages $promtool" >&2
# A broken extra source need not stop the packages of the others.
apt_get update || echo "apt-get update had errors; trying to install anyway" >&2
# shellcheck disable=SC2086 # the list is split on purpose
[ -z "$packages" ] || apt_get install -y --no-install-recommends $packages

if [ -n "$promtool" ]; then
    mkdir -p bin/tools
    folder=$(mktemp -d) && chmod 777 "$folder" # apt downloads as a user of its own
    (cd "$folder" && apt-get download prometheus >/dev/null)
    dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$folder/promtool"
    chmod +x "$folder/promtool" && mv "$folder/promtool" bin/tools/promtool
    rm -rf "$folder"
fi

[ -n "${PAWL_TEST_POSTGRES:-}" ] || CGO_ENABLED=0 go run ./internal/pgtest/with -find >/dev/null
