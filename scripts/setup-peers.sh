#!/usr/bin/env bash
# Puts FastMCP, the official SDK and the sources of their releases, which contain their tests, into .servers/peers.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup-environment.sh peers tests/peers/requirements.txt --requirement tests/peers/requirements.txt
sources=.servers/peers/sources
if [ -f "$sources/.ready" ]; then exit 0; fi
rm -rf "$sources"
mkdir -p "$sources"
for package in fastmcp mcp; do
    release=$(sed -n "s/^$package\(\[.*\]\)\?==/$package==/p" tests/peers/requirements.txt)
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$package" \
        --dest "$sources" "$release"
done
for archive in "$sources"/*.tar.gz; do tar --extract --gzip --file "$archive" --directory "$sources"; done
touch "$sources/.ready"
