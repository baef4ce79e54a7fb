"""Write a package index (PEP 503) for the distributions in a folder, and their digests: ``simple_index.py FOLDER``.

FOLDER/simple has a page for each project, with links to the files in FOLDER. pip and uv take FOLDER/simple, or its URL,
as an index. FOLDER/SHA256SUMS has the digests of all files in the form of sha256sum.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from html import escape
from pathlib import Path

SUMS = "SHA256SUMS"


def write(folder: Path) -> None:
    """Write the index and the digests."""
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir()) if _counts(path)
    }
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()), encoding="utf-8")
    index = folder / "simple"
    shutil.rmtree(index, ignore_errors=True)
    projects: dict[str, list[str]] = {}
    for name, digest in digests.items():
        if name.endswith((".whl", ".tar.gz")):
            project = name.split("-")[0].replace("_", "-")
            projects.setdefault(project, []).append(
                f'<a href="../../{escape(name)}#sha256={digest}">{escape(name)}</a><br>'
            )
    for project, links in projects.items():
        (index / project).mkdir(parents=True)
        (index / project / "index.html").write_text(_page(project, links), encoding="utf-8")
    (index / "index.html").write_text(
        _page("Simple index", [f'<a href="{project}/">{project}</a><br>' for project in projects]), encoding="utf-8"
    )


def _counts(path: Path) -> bool:
    return path.is_file() and path.name != SUMS


def _page(title: str, lines: list[str]) -> str:
    head = f'<meta charset="utf-8"><meta name="pypi:repository-version" content="1.0"><title>{title}</title>'
    return "\n".join(["<!DOCTYPE html>", f'<html lang="en"><head>{head}</head><body>', *lines, "</body></html>", ""])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
