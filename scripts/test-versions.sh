#!/usr/bin/env bash
# The tests that depend most on the packages around funcmcp, on .venv-lowest or .venv-newest: test-versions.sh lowest|newest
set -euo pipefail
tests=(adapters/uvicorn authoring client protocol server wire)
# What is in results, not how it comes: no package but ours decides it.
own=()
for name in json_suite lists origin prompts resources round_machine session_machine utilities; do own+=("--ignore=tests/wire/test_wire_$name.py"); done
exec ".venv-$1/bin/python" -m pytest -n 3 --dist loadscope --no-loadscope-reorder "${own[@]}" "${tests[@]/#/tests/}"
