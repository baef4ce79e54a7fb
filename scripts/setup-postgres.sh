#!/usr/bin/env bash
# Links the programs of a PostgreSQL server as .servers/postgres, for the tests with a real database. Where the machine
# has none, Debian's package is unpacked into .servers: nothing is installed outside this folder.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers
if [ -x "$target/postgres/initdb" ]; then exit 0; fi
mkdir -p "$target"
shopt -s nullglob

adopt() {
    for folder in "$@"; do
        if [ -x "$folder/initdb" ] && "$folder/postgres" --version >/dev/null 2>&1; then
            ln -sfn "$folder" "$target/postgres"
            exit 0
        fi
    done
}

newest_first() { printf '%s\n' "$@" | sort -rV; }

adopt $(newest_first /usr/lib/postgresql/*/bin)
if command -v pg_ctl >/dev/null; then adopt "$(dirname "$(readlink -f "$(command -v pg_ctl)")")"; fi
if command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
    version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p')
    if [ -z "$version" ] && [ "$(id -u)" = 0 ]; then
        apt-get update -qq >/dev/null 2>&1
        version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p')
    fi
    if [ -n "$version" ]; then
        packages=$(mktemp -d)
        # initdb and pg_ctl need the libraries of the second package; the others are in every Debian system.
        (cd "$packages" && apt-get download -qq "postgresql-$version" "postgresql-client-$version" libpq5) >/dev/null 2>&1 || true
        for file in "$packages"/*.deb; do dpkg -x "$file" "$PWD/$target/unpacked-postgres"; done
        rm -rf "$packages"
        libraries=$(echo "$PWD/$target"/unpacked-postgres/usr/lib/*-linux-*)
        export LD_LIBRARY_PATH=$libraries
        adopt "$PWD/$target/unpacked-postgres/usr/lib/postgresql/$version/bin"
    fi
fi
echo "PostgreSQL is missing: the tests that need it are skipped (CI=true: they fail). Install it, and run this again." >&2
