#!/usr/bin/env bash
# Makes .venv-lowest or .venv-newest, with other versions of the dependencies than .venv: setup-versions.sh lowest|newest
set -euo pipefail
versions=$1
folder=.venv-$versions
if [ "$versions" = lowest ] && [ "$folder/.ready" -nt pyproject.toml ]; then exit 0; fi
.venv/bin/python -m venv --clear --without-pip "$folder"
.venv/bin/python scripts/versions.py "$versions" > "$folder/requirements.txt"
scripts/install.sh "$folder/bin/python" --editable . --editable distributions/funcmcp --requirement "$folder/requirements.txt"
touch "$folder/.ready"
