#!/usr/bin/env bash
# Fails unless a tag of origin is signed by a key in .github/allowed_signers, is the commit of this folder, is on main, and is the
# version of its commit: verify-tag.sh TAG
set -euo pipefail
cd "$(dirname "$0")/.."
tag=$1
# actions/checkout leaves a tag without its signature.
git fetch --quiet --force origin "refs/tags/$tag:refs/tags/$tag" main
git -c gpg.ssh.allowedSignersFile=.github/allowed_signers verify-tag "$tag"
# What is built is the commit that was checked out. The tag can have been moved since.
if [ "$(git rev-parse "refs/tags/$tag^{commit}")" != "$(git rev-parse HEAD)" ]; then
    echo "$tag is not the commit of this folder." >&2
    exit 1
fi
if ! git merge-base --is-ancestor "$tag^{commit}" origin/main; then
    echo "$tag is not on main." >&2
    exit 1
fi
if ! git show "$tag:pyproject.toml" | grep -qxF "version = \"${tag#v}\""; then
    echo "$tag is not the version in pyproject.toml." >&2
    exit 1
fi
