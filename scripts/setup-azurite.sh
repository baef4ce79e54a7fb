#!/usr/bin/env bash
# Installs Azurite, the Azure Storage emulator, in tests/node/azurite. scripts/setup-node.sh comes first: it installs
# the Node that runs Azurite.
set -euo pipefail
cd "$(dirname "$0")/../tests/node/azurite"
if [ node_modules/.ready -nt package-lock.json ]; then exit 0; fi
command -v npm >/dev/null || ../../../scripts/install-npm.sh
if ! command -v npm >/dev/null; then
    echo "npm is missing: tests with Azurite are skipped (CI=true: they fail)." >&2
    exit 0
fi
npm ci --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error
touch node_modules/.ready
