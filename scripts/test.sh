#!/usr/bin/env bash
# The passes of the suite. Marks in the modules of the tests decide which pass runs them: docs/development/tests.md.
set -euo pipefail

if [ "${CI:-}" != true ]; then
    scripts/pass.sh .venv -m "not slow"
    echo "Not run: tests marked slow, other Pythons, the lowest versions, and branch coverage. CI=true make test runs them."
    exit
fi

scripts/pass.sh .venv -m branches --cov
scripts/pass.sh .venv -m "not branches"
scripts/pass.sh .venv-lowest -m lowest
if [ -f .venv-3.13/.ready ]; then scripts/pass.sh .venv-3.13 -m every_python; fi
