#!/usr/bin/env bash
# Checks what scripts/dist.sh has built, with the programs of .servers/dist: check-dist.sh [FOLDER]. It installs and starts each
# distribution in an environment of its own, and writes what it brings with it (FOLDER/*.cdx.json, a bill of materials).
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath "${1:-dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=.venv/bin/python
tools=.servers/dist/bin
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
"$tools/twine" check --strict "$target"/*.{whl,tar.gz}
# W004: PyInstaller finds hook-funcmcp.py by its name, which is not that of a module. W009: funcmcp has two packages.
"$tools/check-wheel-contents" --ignore W004 "$target"/funcmcp_slim-*.whl
"$tools/check-wheel-contents" --ignore W009 "$target"/funcmcp-*.whl

# Installs a distribution with the constraints of the release, as users do, and writes the list of its dependencies:
# install_alone NAME PROJECT
install_alone() {
    local alone=$work/$1/bin/python wheel name
    wheel=$(basename "$target/$1"-*.whl)
    name=${wheel%-py3-none-any.whl}
    "$python" -m venv --without-pip "$work/$1"
    scripts/install.sh "$alone" --find-links "$target" --require-hashes --constraint "$target/constraints.txt" "${1/_/-}==${name#*-}"
    "$tools/python" scripts/sbom.py "$alone" "$2" "$target/$name.cdx.json"
}

install_alone funcmcp_slim pyproject.toml
install_alone funcmcp distributions/funcmcp/pyproject.toml
cat > "$work/server.py" <<'PYTHON'
from funcmcp import MCPServer

mcp = MCPServer("Release")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
PYTHON
(cd "$work" && funcmcp_slim/bin/python -I server.py)
(cd "$work" && test "$(funcmcp/bin/funcmcp call server.py add a=1 b=2)" = 3)
"$python" scripts/simple_index.py "$target" # with the digests of the lists
