#!/usr/bin/env bash
# Takes the pictures of the page in docs/images. It needs the Chromium of scripts/setup-browser.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
logs=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}"; rm -r "$logs"' EXIT
endpoints=()
for file in scripts/screenshots/travel.py samples/apps/server.py; do
    log=$logs/${#servers[@]}
    touch "$log"
    .venv/bin/funcmcp run "$file" --port 0 >"$log" 2>&1 &
    servers+=($!)
    until endpoint=$(grep -o 'http://[^ ]*' "$log"); do
        kill -0 $!
        sleep 0.1
    done
    endpoints+=("$endpoint")
done
packages=tests/node/node_modules
"$packages/node/bin/node" scripts/screenshots/take.mjs "$PWD/tests/node" "$packages/.cache/chromium/run" "${endpoints[@]}" docs/images
