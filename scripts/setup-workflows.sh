#!/usr/bin/env bash
# Puts what checks the workflows of GitHub into .servers/workflows.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" workflows pyproject.toml --group workflows
