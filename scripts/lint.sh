#!/usr/bin/env bash
# Linters, types and import rules; the first that fails ends it.
set -euo pipefail
bin=.venv/bin
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/ruff" check --preview --select PLW1514 src # text files have an encoding, which is another one on Windows by default
"$bin/mypy"
"$bin/lint-imports" --no-cache
if [ "${CI:-}" != true ]; then exit; fi
# The code as on other systems and in the newest Python, with an error for each deprecated name: docs/development/platforms.md.
# python_main.py is never started on Windows.
checks=()
for platform in win32 darwin linux; do
    "$bin/mypy" --platform "$platform" --python-version 3.14 --enable-error-code deprecated --no-warn-unreachable \
        --no-warn-unused-ignores --exclude 'workers/python_main\.py$' --cache-dir ".mypy_cache/$platform" src &
    checks+=($!)
done
for check in "${checks[@]}"; do wait "$check"; done
