#!/usr/bin/env bash
# The tests that depend most on the packages around funcmcp, on .venv-lowest or .venv-newest: test-versions.sh lowest|newest
set -euo pipefail
tests=(adapters/uvicorn authoring client protocol server wire)
exec ".venv-$1/bin/python" -m pytest -n 3 --dist loadscope --no-loadscope-reorder "${tests[@]/#/tests/}"
