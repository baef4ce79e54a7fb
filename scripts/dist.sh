#!/usr/bin/env bash
# Builds both distributions, as wheels and as source archives, and an index of them: dist.sh [FOLDER]. One commit always gives the
# same bytes. scripts/check-dist.sh checks them.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${1:-dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=.venv/bin/python
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
rm -rf "$target"/funcmcp*.{whl,tar.gz,cdx.json} "$target"/{SHA256SUMS,simple}
cp -rL distributions/funcmcp "$work/"
mkdir "$work/funcmcp/src"
cp -r src/funcmcp_cli src/funcmcp_host "$work/funcmcp/src/" # a project can't refer to files outside of its folder
"$python" -m hatchling build -d "$target"
builder=$(realpath -s "$python")
(cd "$work/funcmcp" && "$builder" -m hatchling build -d "$target")
"$python" scripts/simple_index.py "$target"
