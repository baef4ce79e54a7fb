"""The page's Markdown: what it makes of a text, and that no text takes long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.page.browser import Browser

pytestmark = pytest.mark.slow("A browser goes through many pages.")

FILES = Path(__file__).parents[2] / "src" / "funcmcp" / "_page" / "files"
SCRIPT = "\n".join((FILES / name).read_text(encoding="utf-8") for name in ("elements.js", "markdown.js"))
LINK = '<a href="https://a.example/x" target="_blank" rel="noopener noreferrer">'
CASES = {
    "Plain text\nof two lines": "<p>Plain text\nof two lines</p>",
    "**Bold**, *soft*, _soft_, ~~gone~~ and `a *b*`": (
        "<p><strong>Bold</strong>, <em>soft</em>, <em>soft</em>, <s>gone</s> and <code>a *b*</code></p>"
    ),
    "__init__, snake_case_name, 2*3*4, f(**a, **b), * not *": (
        "<p>__init__, snake_case_name, 2*3*4, f(**a, **b), * not *</p>"
    ),
    r"\*as it is\* and **open": "<p>*as it is* and **open</p>",
    "# Title\ntext": "<p><strong>Title</strong></p><p>text</p>",
    "- one\n- two\n  - inner\n\nafter": ("<ul><li>one</li><li><p>two</p><ul><li>inner</li></ul></li></ul><p>after</p>"),
    "3. three\n4. four": '<ol start="3"><li>three</li><li>four</li></ol>',
    "> quoted\n> *too*": "<blockquote><p>quoted\n<em>too</em></p></blockquote>",
    "---": "<hr>",
    "[text](https://a.example/x)": f'<p>{LINK}text</a> <span class="quiet">(a.example)</span></p>',
    "[https://bank.example](https://a.example/x)": (
        f'<p>{LINK}https://bank.example</a> <span class="quiet">(a.example)</span></p>'
    ),
    "see https://a.example/x.": f"<p>see {LINK}https://a.example/x</a>.</p>",
    "<https://a.example/x>": f"<p>{LINK}https://a.example/x</a></p>",
    "![a picture](https://a.example/x.png)": '<p><span class="quiet">image </span>a picture</p>',
    "[x](javascript:alert(1))": "<p>[x](javascript:alert(1))</p>",
    "[x](data:text/html,y)": "<p>[x](data:text/html,y)</p>",
    "[x](//a.example)": "<p>[x](//a.example)</p>",
    "[x](https://bank.example@a.example/)": "<p>[x](https://bank.example@a.example/)</p>",
    "<img src=x onerror=alert(1)><!-- hidden -->": "<p>&lt;img src=x onerror=alert(1)&gt;&lt;!-- hidden --&gt;</p>",
    "a\u202eb **\u200b**": "<p>a\\u202eb <strong>\\u200b</strong></p>",
}
SLOW = [
    *("[" * 50_000, "[a](" * 25_000, "[](" + " " * 90_000, '[a](b "' * 14_000, "![" * 50_000, "[[a](b)" * 14_000),
    *("**a " * 25_000, "*a" * 50_000, "_a_" * 33_000, "`" * 90_000, "`a``" * 25_000, "~~a*b_" * 16_000, "\\" * 90_000),
    *("> " * 45_000, "- " * 45_000, "- a\n" * 25_000, "# " + " #" * 40_000, "|" * 50_000 + "\n" + "-|" * 20_000),
    *("https://" * 12_000, "<http://" + "a" * 90_000, "-" * 90_000 + "x", "* " * 45_000 + "x", " " * 90_000 + "x"),
]
"""Texts on which a careless pattern takes quadratic or exponential time."""

PLAY = """
await page.setContent('<main></main><div id="announcement"></div>');
return await page.evaluate(({ source, texts }) => {
    const { markdown, isMarkdown } = new Function(`${source}; return { markdown, isMarkdown };`)();
    return texts.map((text) => [markdown(text).innerHTML, isMarkdown(text)]);
}, args);
"""


def test_markdown_becomes_elements_and_everything_else_stays_text(browser: Browser) -> None:
    seen = browser.play(PLAY, {"source": SCRIPT, "texts": list(CASES)})
    assert {text: html for text, (html, _) in zip(CASES, seen, strict=True)} == CASES


def test_blocks_of_code_and_tables_are_shown(browser: Browser) -> None:
    text = "```python\nx = '<b>'\n```\n\n| a | b |\n|---|:-:|\n| `1` | 2 |\n"
    [[html, is_markdown]] = browser.play(PLAY, {"source": SCRIPT, "texts": [text]})
    assert is_markdown
    assert "x = '&lt;b&gt;'" in html
    assert '<tr><th scope="col">a</th><th scope="col">b</th></tr>' in html
    assert "<tr><td><code>1</code></td><td>2</td></tr>" in html


def test_a_text_is_markdown_only_if_it_looks_like_it(browser: Browser) -> None:
    plain = ["a b", "- yaml\n- list", "x = 2 # no title\n", "f(**a, **b)", "a | b", "key: *anchor*"]
    marked = ["# Title\ntext", "a\n## Part", "some **bold** text", "[x](https://a.example)", "```\nx\n```"]
    seen = browser.play(PLAY, {"source": SCRIPT, "texts": plain + marked})
    assert [is_markdown for _, is_markdown in seen] == [False] * len(plain) + [True] * len(marked)


def test_no_text_takes_long(browser: Browser) -> None:
    """A pattern with quadratic time would take minutes, and the test would not end in its time."""
    seen = browser.play(PLAY, {"source": SCRIPT, "texts": SLOW})
    assert len(seen) == len(SLOW)
