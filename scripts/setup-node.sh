#!/usr/bin/env bash
# Installs the npm packages that the tests run (clients, conformance suites, Node 22) in tests/node.
set -euo pipefail
cd "$(dirname "$0")/../tests/node"
if [ -e node_modules/.ready ] && [ node_modules/.ready -nt package-lock.json ]; then exit 0; fi
if ! command -v npm >/dev/null && [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
fi
if ! command -v npm >/dev/null; then
    echo "npm is missing: the tests with Node clients and the conformance suite will be skipped." >&2
    exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm rebuild node --loglevel=error
touch node_modules/.ready
