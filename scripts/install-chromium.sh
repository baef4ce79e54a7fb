#!/usr/bin/env bash
# Installs the distribution's Chromium where that is possible without asking: as root or with sudo, with apt-get.
set -euo pipefail
command -v apt-get >/dev/null || exit 0
become=(env)
if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || exit 0
    become=(sudo -n env)
fi
echo "Installing chromium with apt-get, for the tests of pages." >&2
become+=(DEBIAN_FRONTEND=noninteractive apt-get)
if ! { "${become[@]}" update -qq && "${become[@]}" install -y -qq --no-install-recommends chromium; } >/dev/null; then
    echo "apt-get could not install chromium." >&2
fi
