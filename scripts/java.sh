#!/usr/bin/env bash
# Works a window of Swing through Debian's bridge to the accessibility bus: java.sh [arguments of pytest]. Optional, and no part of `make test`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { printf 'java: error: %s\n' "$*" >&2; exit 1; }

for needed in /usr/share/java/java-atk-wrapper.jar "$(command -v javac || echo javac)"; do
    [ -e "$needed" ] || fail "$needed is missing; on Debian: apt install libatk-wrapper-java-jni openjdk-17-jre openjdk-17-jdk-headless"
done

.venv/bin/pytest tests/java/swing.py "$@"
