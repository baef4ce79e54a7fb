"""Passages of the site's search are plain text, and llms.txt says what each page is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from scripts.documentation_site import DOCS, Passage, llms_full_txt, llms_txt, pages, passages_of

if TYPE_CHECKING:
    from pathlib import Path

MAX_DESCRIPTION = 200
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
PAGE = """\
# A *page*

<!-- a comment -->
See [web pages
and CORS](cors.md) and **two
words**, `code_1` and a\\_b.

```{toctree}
other
```

## "Quoted" & `code`

| name | text |
|---|---|
| [Tools](tools.md) | **one** or `a \\| b` |
| | last |

- an item with an
  ![image](x.png)

  ```python
  call("[text](link)")
  ```
"""


def test_a_passage_is_plain_text(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    assert passages_of(tmp_path / "page.md", tmp_path) == [
        Passage("page", "A page", "A page", "", "See web pages and CORS and two words, code_1 and a_b."),
        Passage(
            "page",
            "A page",
            '"Quoted" & code',
            "quoted--code",
            'name  text\nTools  one or a | b\nlast\nan item with an image\ncall("[text](link)")',
        ),
    ]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_passages_of_the_site_have_no_markdown(path: Path) -> None:
    code = {line.strip() for block in FENCE.findall(path.read_text(encoding="utf-8")) for line in block.splitlines()}
    for passage in passages_of(path):
        for line in passage.text.splitlines():
            if line.strip() not in code:
                assert not re.search(r"\]\(|\*\*(?=\S)[^*]*(?<=\S)\*\*(?!\w)|^#+ |^\|", line), line


@pytest.mark.slow("All pages are read.")
def test_llms_txt_describes_each_page() -> None:
    entries = [line for line in llms_txt().splitlines() if line.startswith("- ")]
    assert len(entries) > 100
    for entry in entries:
        match = re.fullmatch(r"- \[[^\]]+\]\([\w/.-]+\.md\): (.+)", entry)
        assert match is not None, entry
        assert 10 < len(match[1]) <= MAX_DESCRIPTION, entry
        assert not re.search(r"\]\(|\*\*|`", match[1]), entry


@pytest.mark.slow("All pages are read.")
def test_llms_full_txt_has_the_pages_of_llms_txt_without_the_optional_ones() -> None:
    required, _, optional = llms_txt().partition("## Optional")
    sources = re.findall(r"^Source: (\S+)$", llms_full_txt(), re.MULTILINE)
    assert sources == re.findall(r"\]\(([\w/.-]+\.md)\)", required)
    assert not set(sources) & set(re.findall(r"\]\(([\w/.-]+\.md)\)", optional))
