"""Texts from outside: what controls a terminal or hides a text is escaped, and writing systems remain as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from funcmcp import MCPError
from funcmcp._client.errors import AuthenticationError
from funcmcp._page import page
from funcmcp._text.visible import UNSAFE, hidden_in, visible, visible_line

pytestmark = pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it.")

HIDDEN_TEXTS = [
    "\u200b", "\u2060", "\ufeff", "\u00ad", "\u3164", "\u202e", "\U000e0041", "\U000e0100", "\u200d", "\ufe0f",
]  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN_TEXTS, ids=ascii)
def test_hidden_characters_are_escaped(hidden: str) -> None:
    escaped = ascii(hidden)[1:-1]
    assert visible(f"a{hidden}b") == f"a{escaped}b"
    assert visible_line(f"a{hidden}b\n") == f"a{escaped}b\\n"


RAINBOW_FLAG = "\U0001f3f3\ufe0f\u200d\U0001f308"
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


@pytest.mark.parametrize("text", [PERSIAN, "\U0001f468\u200d\U0001f469", "\u2764\ufe0f", RAINBOW_FLAG, "a\n\tb"])
def test_joiners_of_scripts_and_emoji_remain(text: str) -> None:
    assert visible(text) == text


def test_a_text_can_not_be_hidden_in_variation_selectors() -> None:
    assert visible("\u2764" + "\ufe0f" * 3) == "\u2764\ufe0f\\ufe0f\\ufe0f"


def test_the_page_escapes_the_same_characters() -> None:
    script = (Path(page.__file__).parent / "files" / "elements.js").read_text(encoding="utf-8")
    base = r"\[\^\\x00-\\x7f(.*?)\]"
    classes = re.search(rf"/\[(.*?)\]\|\(\?<!{base}\)\(\?!\(\?<={base}\\ufe0f\)\\u200d\)\[(.*?)\]/gu", script)
    assert classes is not None
    hidden, *joiners = (
        re.sub(r"\\u\{?([0-9a-f]+)\}?", lambda match: chr(int(match[1], 16)), text) for text in classes.groups()
    )
    controls = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    assert UNSAFE.pattern == (
        f"[{controls}{hidden}]|(?<![^\x00-\x7f{joiners[0]}])(?!(?<=[^\x00-\x7f{joiners[1]}]\ufe0f)\u200d)[{joiners[2]}]"
    )


def test_errors_of_a_server_are_escaped() -> None:
    assert str(MCPError(-32000, "a\x1b[2Jb\U000e0041")) == "a\\x1b[2Jb\\U000e0041"
    assert "\x1b" not in str(AuthenticationError(401, "Bearer \x1b[2J\u202e"))


def test_a_sentence_about_hidden_characters_is_one_line() -> None:
    (name, text) = hidden_in("The tool a\nb", {"c\nd\x1b": "\x1b"})
    assert name == "The tool a\\nb has hidden characters in a name in the definition: U+001B."
    assert text == "The tool a\\nb has hidden characters in c\\nd\\x1b: U+001B."
