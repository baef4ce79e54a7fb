#!/usr/bin/env bash
# Puts the generator of the documentation site into .servers/docs: a virtual environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/docs
if [ "$target/.ready" -nt pyproject.toml ]; then exit 0; fi
python=$(scripts/find-python.sh "v >= (3, 11)" .venv/bin/python python3)
if [ ! -x "$target/bin/python" ]; then "$python" -m venv --without-pip "$target"; fi
scripts/install.sh "$target/bin/python" --group docs
touch "$target/.ready"
