#!/usr/bin/env bash
# Puts FastMCP's client, which tests run against funcmcp's tasks, into .servers/fastmcp.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" fastmcp tests/clients/fastmcp-requirements.txt \
    --requirement tests/clients/fastmcp-requirements.txt
