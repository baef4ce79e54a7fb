"""Write the table of docs/guides/compatibility.md from the rules of ``funcmcp inspect --clients``.

Run it with ``make reference``. `tests/docs/test_compatibility.py` compares the page with what this writes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp_cli.client_rules.rules import RULES
from scripts.generated_part import with_part

if TYPE_CHECKING:
    from funcmcp_cli.client_rules.rules import Loss, Rule

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "compatibility.md"
_TITLES: dict[Loss, str] = {
    "server": "All tools are lost",
    "feature": "The feature is lost",
    "detail": "The feature works, but differs",
}
_THREAD = re.compile(r"https://github\.com/([^/]+/[^/]+)/(?:issues|pull)/(\d+)")
_PACKAGE = re.compile(r"https://pypi\.org/project/([^/]+)/([^/]+)/")
_HOST = re.compile(r"https://([^/]+)/")


def tables() -> str:
    """Return a section with a table for each loss."""
    sections = []
    for loss, title in _TITLES.items():
        rows = "\n".join(_row(rule) for rule in RULES if rule.loss == loss)
        head = "| rule | what is accepted | by whom | otherwise | instead |\n|---|---|---|---|---|"
        sections.append(f"### {title}\n\n{head}\n{rows}\n")
    return "\n".join(sections)


def _row(rule: Rule) -> str:
    sources = ", ".join(f"[{_label(source)}]({source})" for source in rule.sources)
    by_whom = f"{', '.join(rule.clients)} ({rule.seen}). {sources}"
    cells = (f"`{rule.word}`", _text(rule.accepts), by_whom, _text(rule.effect), _text(rule.advice))
    return f"| {' | '.join(cells)} |"


def _label(source: str) -> str:
    thread, package = _THREAD.fullmatch(source), _PACKAGE.fullmatch(source)
    if thread is not None:
        return f"{thread[1].partition('/')[2]}#{thread[2]}"
    if package is not None:
        return f"{package[1]} {package[2]}"
    host = _HOST.match(source)
    return source if host is None else host[1]


def _text(sentences: str) -> str:
    """Return sentences in Markdown: a backslash, a brace or an underscore alone would have a meaning there."""
    return re.sub(r"([\\*_<>{}\[\]])", r"\\\1", sentences)


def with_tables(page: str) -> str:
    """Return a page with the tables between its markers."""
    return with_part(page, "rules", tables())


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
