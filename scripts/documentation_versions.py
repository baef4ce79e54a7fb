"""Build the documentation of each version: ``python -m scripts.documentation_versions FOLDER``.

FOLDER/latest has the documentation of HEAD, and FOLDER/0.2 that of the newest tag ``v0.2.*``, each from the files of
its commit. All pages load FOLDER/versions.js, which shows a switch between versions. Old versions have it as well.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".servers" / "docs" / "bin" / "python"
SWITCH = ROOT / "docs" / "_static" / "versions.js"
LATEST = "latest"
UNTAGGED = {"0.1": "49bcfc3bb1f27e30c058c412b182ea14d08a6895"}
"""Commits of versions from before the first tag."""

_TAG = re.compile(r"v\d+\.\d+\.\d+")
_START = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>funcmcp</title>'
    f'<meta http-equiv="refresh" content="0; url={LATEST}/index.html"></head></html>\n'
)


def commits(repository: Path = ROOT) -> dict[str, str]:
    """Return a commit or tag for each version, the newest first."""
    tags = [tag for tag in _run(repository, "git", "tag", "--list").decode().split() if _TAG.fullmatch(tag)]
    versions = dict(UNTAGGED)
    for tag in sorted(tags, key=Version):
        versions[f"{Version(tag).major}.{Version(tag).minor}"] = tag
    return {LATEST: "HEAD", **{version: versions[version] for version in sorted(versions, key=Version, reverse=True)}}


def build(target: Path, versions: dict[str, str], repository: Path = ROOT) -> None:
    """Build the documentation of versions, and the switch between them."""
    pages = {}
    for version, commit in versions.items():
        with tempfile.TemporaryDirectory() as folder:
            _run(Path(folder), "tar", "-x", stdin=_run(repository, "git", "archive", commit))
            options = ["-W", "--keep-going", "--quiet", "-j", "auto", "-d", f"{folder}/.doctrees"]
            _run(Path(folder), str(PYTHON), "-m", "sphinx", *options, "docs", str(target.absolute() / version))
        pages[version] = _add_switch(target / version)
    data = json.dumps(pages, separators=(",", ":"))
    (target / "versions.js").write_text(
        f"const VERSIONS = {data};\n{SWITCH.read_text(encoding='utf-8')}", encoding="utf-8"
    )
    (target / "index.html").write_text(_START, encoding="utf-8")


def _add_switch(site: Path) -> list[str]:
    """Load the switch in each page of a version. Return the paths of the pages."""
    pages = []
    for path in sorted(set(site.rglob("*.html")) - set((site / "_downloads").rglob("*.html"))):
        page = path.relative_to(site)
        script = f'<script defer src="{"../" * len(page.parts)}versions.js"></script></head>'
        path.write_text(path.read_text(encoding="utf-8").replace("</head>", script, 1), encoding="utf-8")
        pages.append(page.as_posix())
    return pages


def _run(folder: Path, *command: str, stdin: bytes | None = None) -> bytes:
    """Run a program, and return its output."""
    return subprocess.run(command, cwd=folder, input=stdin, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603


if __name__ == "__main__":
    build(Path(sys.argv[1]), commits())
