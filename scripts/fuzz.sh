#!/bin/sh
# Runs every fuzz test of the module for a while: scripts/fuzz.sh 20s
set -eu
cd "$(dirname "$0")/.."
duration=${1:-20s}

# One at a time, because go test fuzzes one function per call.
grep -roE --include='*_test.go' --exclude-dir=bench '^func Fuzz[A-Za-z0-9_]+' . |
    while IFS=: read -r file declaration; do
        name=${declaration#func }
        echo "== $name in $(dirname "$file")"
        go test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" "$(dirname "$file")" </dev/null
    done
