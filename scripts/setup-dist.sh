#!/usr/bin/env bash
# Puts what builds and checks the distributions into .servers/dist.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" dist pyproject.toml --group dist
