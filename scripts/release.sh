#!/usr/bin/env bash
# Makes a release: release.sh VERSION [FOLDER]. It writes the version and the section of the changelog, commits both, and builds what
# is published into FOLDER. It publishes nothing: .github/workflows/release.yml does, when a signed tag is pushed.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "$(git status --porcelain)" ]; then
    echo "Commit the changes of this folder first. What a release that was interrupted has written is discarded with: git restore ." >&2
    exit 1
fi
.venv/bin/python -m scripts.release "$1"
git commit --quiet --all --message "Release $1"
scripts/dist.sh "${2:-dist}"
scripts/check-dist.sh "${2:-dist}"
echo "Publish it with: git tag --sign v$1 --message 'Version $1' && git push origin main v$1"
