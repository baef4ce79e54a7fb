#!/usr/bin/env bash
# Makes .venv-3.13 for the second run of the suite, where Python 3.13 is here and .venv has another.
set -euo pipefail
if .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))'; then exit 0; fi
if [ .venv-3.13/.ready -nt pyproject.toml ]; then exit 0; fi
shopt -s nullglob
if python=$(scripts/find-python.sh "v == (3, 13)" python3.13 "$(pyenv root 2>/dev/null)"/versions/3.13.*/bin/python); then
    scripts/setup-python.sh .venv-3.13 "$python"
else
    echo "Python 3.13 is not here: the suite will run on $(.venv/bin/python --version) only."
fi
