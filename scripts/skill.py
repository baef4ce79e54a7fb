"""Write the list of pages in the skill for coding agents. Run it with ``make reference``.

The skill is a part of the distribution, in the folder where `library-skills` and other programs look for skills.
"""

from __future__ import annotations

from pathlib import Path

from scripts.documentation_site import DOCS, description_of, pages, passages_of

ROOT = Path(__file__).parents[1]
SKILL = ROOT / "src" / "funcmcp_cli" / ".agents" / "skills" / "funcmcp"
PAGES = SKILL / "references" / "pages.md"
ADDRESS = "https://raw.githubusercontent.com/funcmcp/funcmcp/main/docs"
_HEAD = f"""\
# Pages of the documentation

Each line is a page: its title, its path, what it is about, and its headings. Read it at {ADDRESS}/PATH.
"""
_WITHOUT_HEADINGS = "reference/api/"
"""The folder of pages whose headings are names of the package."""


def list_of_pages() -> str:
    """Return the text of references/pages.md."""
    names = [path.relative_to(DOCS).as_posix() for path in pages() if path.name != "index.md"]
    entries = [_entry(name) for name in names if not name.startswith("development/")]
    return _HEAD + "\n" + "\n".join(entries) + "\n"


def _entry(name: str) -> str:
    """Return the line for a page."""
    first, *others = passages_of(DOCS / name)
    entry = f"- {first.title} (`{name}`): {description_of(name)}."
    if others and not name.startswith(_WITHOUT_HEADINGS):
        entry += " Headings: " + "; ".join(passage.heading for passage in others) + "."
    return entry


def main() -> None:
    """Write the file."""
    PAGES.write_text(list_of_pages(), encoding="utf-8")


if __name__ == "__main__":
    main()
