#!/usr/bin/env bash
# Prints the first Python that runs, has venv and is of a version: find-python.sh EXPRESSION CANDIDATE...
# EXPRESSION is Python over `v`, such as "v >= (3, 11)". Exit status 1: there is none.
set -euo pipefail
wanted=$1
shift
probe="import sys, venv, ensurepip; v = sys.version_info[:2]; sys.exit(not ($wanted))"
for candidate in "$@"; do
    if "$candidate" -c "$probe" >/dev/null 2>&1; then
        echo "$candidate"
        exit 0
    fi
done
exit 1
