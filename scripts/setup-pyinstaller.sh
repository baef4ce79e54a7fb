#!/usr/bin/env bash
# Puts PyInstaller, which tests freeze a server with, into .servers/pyinstaller: a virtual environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/pyinstaller
if [ "$target/.ready" -nt pyproject.toml ]; then exit 0; fi
python=$(scripts/find-python.sh "v >= (3, 11)" .venv/bin/python python3)
if [ ! -x "$target/bin/python" ]; then "$python" -m venv --without-pip "$target"; fi
scripts/install.sh "$target/bin/python" --group pyinstaller --editable ".[server]"
touch "$target/.ready"
