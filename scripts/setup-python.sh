#!/usr/bin/env bash
# Makes a virtual environment with funcmcp and all that its tests need: setup-python.sh FOLDER [PYTHON]
set -euo pipefail
folder=$1
if ! python=$(scripts/find-python.sh "v >= (3, 11)" "${@:2}" python3 python3.13 python3.12 python3.11); then
    echo "funcmcp needs Python 3.11 or newer with its venv module; none was found on PATH." >&2
    exit 1
fi
"$python" -m venv --clear "$folder"
pip=("$folder/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" --upgrade "pip>=25.1" "uv>=0.9" # the first pip that knows dependency groups
scripts/install.sh "$folder/bin/python" --editable . --editable distributions/funcmcp --group dev
# Microsoft's Python worker runs with packages of its own year. It is not installed beside the packages of the tests.
"${pip[@]}" --no-deps --ignore-requires-python --target "$folder/function-worker" --group function-worker
touch "$folder/.ready"
