#!/usr/bin/env bash
# Makes a virtual environment with funcmcp and all that its tests need: setup-python.sh FOLDER [PYTHON]
set -euo pipefail
folder=$1 python=${2:-}
for candidate in "$python" python3 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        "$candidate" -m venv --clear "$folder"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
        exec "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[cli]" --group dev
    fi
done
echo "funcmcp needs Python 3.11 or newer, with venv; none was found." >&2
exit 1
