#!/usr/bin/env bash
# Puts the frameworks of docs/guides/frameworks.md into .servers/frameworks.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" frameworks pyproject.toml --group frameworks
