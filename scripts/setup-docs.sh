#!/usr/bin/env bash
# Puts the generator of the documentation site into .servers/docs.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" docs pyproject.toml --group docs
