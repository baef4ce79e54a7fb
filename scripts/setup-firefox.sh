#!/usr/bin/env bash
# Links a Firefox, with which tests of the sign-in pages run, into .servers/firefox. It is the machine's own, installed with
# apt-get where that is possible without asking.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/firefox
if [ -x "$target" ]; then exit 0; fi
mkdir -p .servers

installed() { command -v firefox-esr || command -v firefox; }

if ! installed >/dev/null && command -v apt-get >/dev/null; then
    become=()
    if [ "$(id -u)" != 0 ]; then become=(sudo -n); fi
    if "${become[@]}" true 2>/dev/null; then
        echo "Installing firefox-esr with apt-get, for the tests of the sign-in pages." >&2
        become+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
        install=("${become[@]}" install -y -qq --no-install-recommends firefox-esr)
        "${install[@]}" >/dev/null 2>&1 || { "${become[@]}" update -qq && "${install[@]}"; } >/dev/null || true
    fi
fi
if ! found=$(installed); then
    echo "There is no Firefox here: the tests that need it are skipped (CI=true: they fail). Install one, and run this again." >&2
    exit 0
fi
ln -sfn "$found" "$target"
