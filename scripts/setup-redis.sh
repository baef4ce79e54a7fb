#!/usr/bin/env bash
# Puts redis-server and haproxy into .servers, for the tests of several instances; started by .servers/bin/NAME.
# On Debian and its kin they come out of the distribution's packages: nothing is installed outside this folder, and no
# rights are needed. Elsewhere they are the machine's own, if it has them.
set -euo pipefail
cd "$(dirname "$0")/.."
target=.servers
if [ -f "$target/.ready" ]; then exit 0; fi
rm -rf "$target"
mkdir -p "$target/bin" "$target/packages"

# The libraries that a plain system lacks come too. What has another name here is left out; -v shows whether it matters.
packages=(redis-server redis-tools libjemalloc2 liblzf1 haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1)

fetch() { (cd "$target/packages" && apt-get download -qq "$1") >/dev/null 2>&1; }

unpack() {
    if ! fetch redis-server && [ "$(id -u)" = 0 ]; then apt-get update -qq >/dev/null 2>&1; fi # no lists of packages yet
    for package in "${packages[@]}"; do fetch "$package" || true; done
    for file in "$target"/packages/*.deb; do
        if [ -f "$file" ]; then dpkg -x "$file" "$target/unpacked"; fi
    done
}

write_starter() {
    cat >"$target/bin/$1" <<END
#!/usr/bin/env bash
here=\$(cd "\$(dirname "\$0")/.." && pwd)
export LD_LIBRARY_PATH=\$(echo "\$here"/unpacked/usr/lib/*-linux-*)
exec "\$here/unpacked/$2" "\$@"
END
    chmod +x "$target/bin/$1"
    "$target/bin/$1" -v >/dev/null 2>&1 || rm "$target/bin/$1"
}

adopt() {
    if [ ! -x "$target/bin/$1" ] && command -v "$1" >/dev/null; then ln -s "$(command -v "$1")" "$target/bin/$1"; fi
}

if command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
    unpack
    write_starter redis-server usr/bin/redis-server
    write_starter haproxy usr/sbin/haproxy
fi
rm -rf "$target/packages"
for name in redis-server haproxy; do
    adopt "$name"
    if [ ! -x "$target/bin/$name" ]; then
        echo "$name is missing: the tests that need it are skipped (CI=true: they fail). Install it, and run this again." >&2
        exit 0
    fi
done
touch "$target/.ready"
