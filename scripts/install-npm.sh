#!/usr/bin/env bash
# Installs the distribution's Node and npm where that is possible without asking: as root, with apt-get.
set -euo pipefail
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then exit 0; fi
echo "Installing nodejs and npm with apt-get, for the tests with Node clients." >&2
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm; } >/dev/null; then
    echo "apt-get could not install nodejs and npm." >&2
fi
