#!/usr/bin/env bash
# Makes .servers/NAME, a virtual environment of its own for packages that do not fit beside those of the tests:
# setup-environment.sh NAME FILE OPTION... FILE has the versions. When it changes, the environment is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/$1
if [ "$target/.ready" -nt "$2" ]; then exit 0; fi
python=$(scripts/find-python.sh "v >= (3, 11)" .venv/bin/python python3)
"$python" -m venv --clear --without-pip "$target"
scripts/install.sh "$target/bin/python" "${@:3}"
touch "$target/.ready"
