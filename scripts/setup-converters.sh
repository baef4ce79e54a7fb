#!/usr/bin/env bash
# Installs the client libraries whose conversions of tools are tested: three virtual environments in .servers/converters,
# because they need different versions of the official SDK, and npm packages in tests/node/converters.
# The packages are large, so a newcomer's `make test` does without them: CI=true or `make converters` installs them.
set -euo pipefail
cd "$(dirname "$0")/.."
for name in sdk1 sdk2 genai3; do
    target=.servers/converters/$name
    constraints=tests/converters/constraints-$name.txt
    requirements=tests/converters/requirements-$name.txt
    if [ "$target/.ready" -nt "$constraints" ] && [ "$target/.ready" -nt "$requirements" ]; then continue; fi
    python=$(scripts/find-python.sh "v >= (3, 11)" .venv/bin/python python3)
    "$python" -m venv --clear --without-pip "$target"
    scripts/install.sh "$target/bin/python" --constraint "$constraints" --requirement "$requirements"
    touch "$target/.ready"
done
cd tests/node/converters
if [ node_modules/.ready -nt package-lock.json ]; then exit 0; fi
command -v npm >/dev/null || ../../../scripts/install-npm.sh
if ! command -v npm >/dev/null; then
    echo "npm is missing: tests with converters of Node clients are skipped (CI=true: they fail)." >&2
    exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
touch node_modules/.ready
