#!/usr/bin/env bash
# Puts what looks up vulnerabilities of dependencies into .servers/audit.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" audit pyproject.toml --group audit
