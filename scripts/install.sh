#!/usr/bin/env bash
# Installs Python packages for the Python of a virtual environment: install.sh PYTHON OPTION...
# uv takes a fifth of pip's time. It does not read pip's configuration: where the index is named only there, pip installs.
set -euo pipefail
python=$1
uv="$(dirname "$python")/uv"
[ -x "$uv" ] || uv=.venv/bin/uv
if "$uv" pip install --quiet --python "$python" "${@:2}"; then exit 0; fi
echo "uv could not install the packages; pip tries." >&2
# The pip of .venv is new enough for dependency groups.
exec .venv/bin/python -m pip --python "$python" install --quiet --disable-pip-version-check "${@:2}"
