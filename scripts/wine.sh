#!/usr/bin/env bash
# Runs the code for Windows on a Windows Python under Wine: wine.sh [arguments of pytest]. Optional, and no part of `make test`.
#
# No registry has a Python for Windows as such. The wheel of panda3d carries one of 3.11, as programs made with it need it: python311.dll and
# the modules in C. The modules in Python are those of the Python 3.11 here, and a launcher of three lines joins the two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=$PWD/build/wine
python=$home/python
cc=x86_64-w64-mingw32-gcc
export WINEPREFIX=$home/prefix WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe="

fail() { printf 'wine: error: %s\n' "$*" >&2; exit 1; }

for program in wine Xvfb python3.11 "$cc"; do
    command -v "$program" >/dev/null ||
        fail "$program is missing; on Debian: apt install wine wine64 gcc-mingw-w64-x86-64-win32 xvfb python3.11"
done

for_windows() { # installs wheels for Windows into the folder $1
    .venv/bin/uv pip install -q --python-platform x86_64-pc-windows-msvc --python-version 3.11 --only-binary :all: --target "$@"
}

make_python() {
    rm -rf "$python" "$home/panda" && mkdir -p "$python"
    for_windows "$home/panda" --no-deps panda3d==1.10.16
    cp "$home"/panda/deploy_libs/* "$python"
    cp -r "$(python3.11 -c 'import os; print(os.path.dirname(os.__file__))')" "$python/Lib"
    rm -rf "$python"/Lib/{site-packages,dist-packages,test,lib-dynload}
    # Python 3.11.9, of which the library is, calls this on the class.
    sed -i 's/^    def invalidate_caches(cls):/    @classmethod\n&/' "$python/Lib/importlib/metadata/__init__.py"
    cat >"$home/launcher.c" <<'C'
#include <wchar.h>
extern __declspec(dllimport) int Py_Main(int argc, wchar_t **argv);
int wmain(int argc, wchar_t **argv) { return Py_Main(argc, argv); }
C
    # Wine 8 lacks a library that programs in Rust take their random numbers from.
    cat >"$home/random.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL ProcessPrng(PBYTE bytes, SIZE_T count) { return SystemFunction036(bytes, (ULONG)count); }
C
    "$cc" -municode -o "$python/python.exe" "$home/launcher.c" "$python/python311.dll"
    "$cc" -shared -o "$python/bcryptprimitives.dll" "$home/random.c" -ladvapi32
    touch "$home/python.made"
}

make_packages() {
    # Wine 8 lacks functions that later numpy calls.
    for_windows "$home/site" anyio click docstring-parser google-re2 jinja2 packaging platformdirs pluggy 'pydantic>=2.11' pyyaml \
        comtypes mss 'numpy<2.2' pytest pytest-timeout hypothesis
    touch "$home/site.made"
}

make_prefix() {
    wineboot -i >/dev/null 2>&1
    # Windows has its own desktop then, and no X window manager has a say.
    wine reg add 'HKCU\Software\Wine\Explorer' /v Desktop /d Default /f >/dev/null
    wine reg add 'HKCU\Software\Wine\Explorer\Desktops' /v Default /d 1280x800 /f >/dev/null
    wineserver -w
    touch "$home/prefix.made"
}

mkdir -p "$home"
[ -e "$home/python.made" ] || make_python
[ -e "$home/site.made" ] || make_packages

exec 3< <(exec Xvfb -displayfd 1 -screen 0 1280x800x24 -nolisten tcp 2>/dev/null)
screen=$!
trap 'wineserver -k >/dev/null 2>&1 || true; kill "$screen"' EXIT
read -r number <&3
export DISPLAY=:$number
[ -e "$home/prefix.made" ] || make_prefix

seen() { printf 'Z:%s' "${1//\//\\}"; } # a path as Windows sees it
export PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1
PYTHONPATH="$(seen "$home/site");$(seen "$PWD/core/src");$(seen "$PWD/plugins/gui/src");$(seen "$PWD/plugins/accessibility/src")"
export PYTHONPATH
# Python takes neither a terminal of Wine's nor an empty device for its streams here.
wine "$python/python.exe" -m pytest -p no:cacheprovider "${@:-tests/on_windows}" < <(:) 2>&1 | cat
exit "${PIPESTATUS[0]}"
