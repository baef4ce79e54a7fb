#!/usr/bin/env bash
# Installs published servers, which tests put behind a proxy: npm packages in tests/node/upstreams, and Python packages in
# .servers/upstreams. scripts/setup-node.sh comes first: it installs the Node that runs them.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-environment.sh upstreams tests/proxy/requirements.txt --requirement tests/proxy/requirements.txt
cd tests/node/upstreams
if [ node_modules/.ready -nt package-lock.json ]; then exit 0; fi
command -v npm >/dev/null || ../../../scripts/install-npm.sh
if ! command -v npm >/dev/null; then
    echo "npm is missing: tests with published servers are skipped (CI=true: they fail)." >&2
    exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
touch node_modules/.ready
