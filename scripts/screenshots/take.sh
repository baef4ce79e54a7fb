#!/usr/bin/env bash
# Takes the pictures of the page in docs/images. It needs the Chromium of scripts/setup-browser.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
log=$(mktemp)
.venv/bin/funcmcp run scripts/screenshots/travel.py --port 0 >"$log" 2>&1 &
server=$!
trap 'kill "$server"; rm "$log"' EXIT
until endpoint=$(grep -o 'http://[^ ]*' "$log"); do
    kill -0 "$server"
    sleep 0.1
done
packages=tests/node/node_modules
"$packages/node/bin/node" scripts/screenshots/take.mjs "$PWD/tests/node" "$packages/.cache/chromium/run" "$endpoint" docs/images
