#!/usr/bin/env bash
# Builds both distributions, as wheels and as source archives, with an index of them and constraints: dist.sh [FOLDER]. One commit
# always gives the same bytes. scripts/check-dist.sh checks them.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${1:-dist}")
python=.venv/bin/python
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
rm -rf "$target"/funcmcp*.{whl,tar.gz,cdx.json} "$target"/{SHA256SUMS,constraints.txt,simple}
"$python" -m hatchling build -d "$target"
builder=$(realpath -s "$python")
(cd distributions/funcmcp && "$builder" -m hatchling build -d "$target")
"$python" scripts/release_constraints.py "$target"
"$python" scripts/simple_index.py "$target"
