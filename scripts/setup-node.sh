#!/usr/bin/env bash
# Installs the npm packages that the tests run (clients, conformance suites, Node 22) in tests/node.
set -euo pipefail
cd "$(dirname "$0")/../tests/node"
if [ node_modules/.ready -nt package-lock.json ]; then exit 0; fi
command -v npm >/dev/null || ../../scripts/install-npm.sh
if ! command -v npm >/dev/null; then
    echo "npm is missing: tests with Node clients and the conformance suites are skipped (CI=true: they fail)." >&2
    exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm rebuild node --loglevel=error # the one script that is needed: it puts Node 22 in its place
node_modules/node/bin/node --version >/dev/null
touch node_modules/.ready
