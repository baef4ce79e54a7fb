"""What other versions of the proxy seal and store: recorded texts of 0.1, and texts with other members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import decode, encode
from tests.oauth_proxy.stage import KEYS, URL

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("version_0_1.json").read_text("utf-8"))
KEYS_OF_PROXY = KEYS.of(f"oauth {URL}")
MORE = {"added": {"by": ["a later version"]}}
NOT_JSON = b"\xff not JSON"


def value_in(purpose: str, text: str) -> Any:
    """Return the value in a concealed text of the proxy."""
    payload = KEYS_OF_PROXY.reveal(purpose, text)
    assert payload is not None
    return decode(payload)


def concealed(purpose: str, value: object) -> str:
    """Return a concealed text with a value in it; bytes are concealed as they are."""
    return KEYS_OF_PROXY.conceal(purpose, value if isinstance(value, bytes) else encode(value))


def with_more(value: dict[str, Any]) -> dict[str, Any]:
    """Return a record as a later version writes it."""
    return {**value, **MORE}


def bad_values(value: dict[str, Any]) -> Iterator[object]:
    """Yield values that this version can't read in place of a record."""
    yield from (b"", NOT_JSON, None, 1, "", [], {}, [1, 2], [[]], list(value.values()), list(value.values())[1:])
    yield from ({**value, "v": 2}, {**value, "v": None}, {**value, "v": "1"})
    for name in value.keys() - {"added"}:
        yield {other: member for other, member in value.items() if other != name}
        yield from ({**value, name: {"a": 1}}, {**value, name: [None]}, {**value, name: [{}]})
