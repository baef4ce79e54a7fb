#!/usr/bin/env bash
# Puts FastMCP, with which tests/differential compares funcmcp, into .servers/differential.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" differential tests/differential/requirements.txt \
    --requirement tests/differential/requirements.txt
