#!/usr/bin/env bash
# The suite on .venv with branch coverage of protocol/ and server/, then on Python 3.13 where there is one.
set -euo pipefail
# Many tests wait for processes, so three workers keep two cores busy. The modules run in the order of their names: those
# with few long tests come early, and none of them runs alone at the end.
suite=(-m pytest -n 3 --dist loadscope --no-loadscope-reorder)
.venv/bin/python "${suite[@]}" --cov --cov-report=term
if .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))'; then exit 0; fi
shopt -s nullglob
if ! python=$(scripts/find-python.sh "v == (3, 13)" python3.13 "$(pyenv root 2>/dev/null)"/versions/3.13.*/bin/python); then
    echo "Python 3.13 is not here: the suite ran on $(.venv/bin/python --version) only."
    exit 0
fi
[ .venv-3.13/.ready -nt pyproject.toml ] || scripts/setup-python.sh .venv-3.13 "$python"
# These test files, texts, commands and other programs; their outcome does not depend on the Python version of the server.
once=(adapters/asgi/test_application_servers.py apps architecture clients cluster conformance corpus docs fuzz samples transcripts)
for name in diff doctor install migrate test_call.py test_call_tasks.py test_connect.py test_connect_urls.py test_https.py \
    test_inspect.py test_read.py test_request_log.py test_targets.py; do once+=("cli/$name"); done
.venv-3.13/bin/python "${suite[@]}" "${once[@]/#/--ignore=tests/}"
