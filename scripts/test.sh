#!/usr/bin/env bash
# The suite on this Python with coverage of the two core rooms, and again on Python 3.13 where there is one.
set -euo pipefail
.venv/bin/python -m pytest -n 2 --dist loadscope --cov --cov-report=term
python313=$(command -v python3.13 || PYENV_VERSION=3.13.0 pyenv which python3.13 2>/dev/null || true)
if .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))'; then
    exit 0
elif [ -z "$python313" ]; then
    echo "Python 3.13 is not here: the suite ran on $(.venv/bin/python --version) only."
    exit 0
fi
[ -e .venv-3.13/.ready ] || { scripts/setup-python.sh .venv-3.13 "$python313" && touch .venv-3.13/.ready; }
.venv-3.13/bin/python -m pytest -n 2 --dist loadscope --no-cov
