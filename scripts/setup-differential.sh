#!/usr/bin/env bash
# Puts FastMCP, with which tests/differential compares funcmcp, into .servers/differential: a virtual environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/differential
requirements=tests/differential/requirements.txt
if [ "$target/.ready" -nt "$requirements" ]; then exit 0; fi
python=$(scripts/find-python.sh "v >= (3, 11)" .venv/bin/python python3)
"$python" -m venv --clear "$target"
scripts/install.sh "$target/bin/python" --requirement "$requirements"
touch "$target/.ready"
