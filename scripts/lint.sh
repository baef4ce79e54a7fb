#!/usr/bin/env bash
# Linters, types and import rules; the first that fails ends it.
set -euo pipefail
bin=.venv/bin
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy"
"$bin/lint-imports" --no-cache
