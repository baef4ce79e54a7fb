#!/usr/bin/env bash
# Makes .servers/previous, a virtual environment with the last version of funcmcp and uvicorn, for tests/upgrades. Its wheel
# is built from the commit of the version. The versions of all other packages are those of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=49bcfc3bb1f27e30c058c412b182ea14d08a6895 # 0.1
target=.servers/previous
if [ "$target/.ready" -nt scripts/setup-previous.sh ] && [ "$target/.ready" -nt pyproject.toml ]; then exit 0; fi
if ! git cat-file -e "$commit" 2>/dev/null && ! git fetch --quiet --depth=1 origin "$commit"; then
    echo "Commit $commit is missing: tests with two versions are skipped (CI=true: they fail)." >&2
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive "$commit" pyproject.toml README.md LICENSE scripts src | tar -x -C "$work"
builder=$(realpath -s .venv/bin/python)
(cd "$work" && "$builder" -m hatchling build -t wheel -d "$work/dist")
wheel=$(echo "$work"/dist/funcmcp_slim-*.whl)
.venv/bin/uv pip freeze --quiet --exclude-editable --python .venv/bin/python >"$work/versions.txt"
"$builder" -m venv --clear --without-pip "$target"
extras=server,redis,postgres,auth,azure-tasks
scripts/install.sh "$target/bin/python" --constraint "$work/versions.txt" "funcmcp-slim[$extras] @ file://$wheel"
touch "$target/.ready"
