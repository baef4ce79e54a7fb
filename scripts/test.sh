#!/usr/bin/env bash
# The suite on .venv with branch coverage of protocol/ and server/, then on Python 3.13 where there is one.
set -euo pipefail
# In the order of their names: the modules with few long tests come early, and none of them runs alone at the end.
suite=(-m pytest -n 2 --dist loadscope --no-loadscope-reorder)
.venv/bin/python "${suite[@]}" --cov --cov-report=term
if .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))'; then exit 0; fi
shopt -s nullglob
if ! python=$(scripts/find-python.sh "v == (3, 13)" python3.13 "$(pyenv root 2>/dev/null)"/versions/3.13.*/bin/python); then
    echo "Python 3.13 is not here: the suite ran on $(.venv/bin/python --version) only."
    exit 0
fi
[ .venv-3.13/.ready -nt pyproject.toml ] || scripts/setup-python.sh .venv-3.13 "$python"
# These test files, texts and other programs; their outcome does not depend on the Python version of the server.
once=(apps architecture clients conformance corpus docs fuzz transcripts cluster/test_faults.py cluster/test_soak.py samples/test_audit.py)
.venv-3.13/bin/python "${suite[@]}" "${once[@]/#/--ignore=tests/}"
