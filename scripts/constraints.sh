#!/usr/bin/env bash
# Writes constraints.txt and benchmarks/constraints.txt from the pyproject files: names, versions and hashes, no addresses.
# Versions already there are kept where they still fit; `constraints.sh --upgrade` takes the newest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

compile() { # output file, dependency group, flags
    local output=$1 group=$2 scratch
    shift 2
    scratch=$(mktemp)
    [ ! -e "$output" ] || cp "$output" "$scratch"
    "${UV:-.venv/bin/uv}" pip compile -q --universal --python-version 3.11 --generate-hashes --all-extras --group "$group" \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@" -o "$scratch" \
        pyproject.toml core/pyproject.toml plugins/*/pyproject.toml >/dev/null
    # The workspace's own packages come out as paths.
    grep -v '^-e ' "$scratch" >"$output"
    rm "$scratch"
    ! grep -nE '://|^-' "$output" || { echo "constraints: $output holds an address" >&2; exit 1; }
}

compile constraints.txt dev "$@"
compile benchmarks/constraints.txt bench "$@"
