#!/usr/bin/env bash
# Puts PyInstaller, which tests freeze a server with, into .servers/pyinstaller.
set -euo pipefail
exec "$(dirname "$0")/setup-environment.sh" pyinstaller pyproject.toml --group pyinstaller --editable ".[server]"
