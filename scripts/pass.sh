#!/usr/bin/env bash
# One pass of the suite on a virtual environment: pass.sh FOLDER [OPTION OF PYTEST...]
set -euo pipefail
# Many tests wait for processes, so four workers keep two cores busy. The modules run in the order of their names: those
# with few long tests come early, and none of them runs alone at the end.
# Tests start Python hundreds of times, which takes half as long again without compiled files.
unset PYTHONDONTWRITEBYTECODE
# Otherwise each worker would compile the same modules at the same time.
"$1/bin/python" -m compileall -q -j 0 src
exec "$1/bin/python" -m pytest -n 4 --dist loadscope --no-loadscope-reorder "${@:2}"
