#!/usr/bin/env bash
# Builds both distributions, as wheels and as source archives: dist.sh [FOLDER]. With .servers/dist it checks them, too.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${1:-dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=.venv/bin/python
rm -f "$target"/funcmcp*.whl "$target"/funcmcp*.tar.gz
cp -rL distributions/funcmcp "$work/"
mkdir "$work/funcmcp/src"
cp -r src/funcmcp_cli src/funcmcp_host "$work/funcmcp/src/" # a project can't refer to files outside of its folder
"$python" -m hatchling build -d "$target"
builder=$(realpath -s "$python")
(cd "$work/funcmcp" && "$builder" -m hatchling build -d "$target")
if [ ! -f .servers/dist/.ready ]; then exit 0; fi
.servers/dist/bin/twine check --strict "$target"/*
# W004: PyInstaller finds hook-funcmcp.py by its name, which is not that of a module. W009: funcmcp has two packages.
.servers/dist/bin/check-wheel-contents --ignore W004 "$target"/funcmcp_slim-*.whl
.servers/dist/bin/check-wheel-contents --ignore W009 "$target"/funcmcp-*.whl
