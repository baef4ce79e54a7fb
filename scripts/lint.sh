#!/usr/bin/env bash
# Linters, types and import rules.
set -euo pipefail
bin=.venv/bin
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy"
"$bin/lint-imports" --no-cache
