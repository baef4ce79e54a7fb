from __future__ import annotations

from typing import Annotated

import pytest

from funcmcp._authoring.schemas.string_formats import FORMATS, Format
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.tool_calls import call, schema_of

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

GOOD = {
    "date": ["2026-07-28"],
    "date-time": ["2026-07-28T12:00:00Z", "2026-07-28t12:00:00.5+02:00"],
    "email": ["a@example.com", "first.last+tag@sub.example.org"],
    "hostname": ["example.com", "a-1", "localhost"],
    "ipv4": ["127.0.0.1"],
    "ipv6": ["::1"],
    "phone": ["+47 22 22 55 55", "(555) 123-4567"],
    "time": ["12:00:00", "12:00:00Z"],
    "uri": ["https://example.com/a?b=%20#c", "urn:isbn:1"],
    "uuid": ["12345678-1234-5678-1234-567812345678"],
}
BAD = {
    "date": ["2026-13-01", "28.7.2026", "20260728", ""],
    "date-time": ["2026-07-28", "2026-07-28T25:00:00Z", "x"],
    "email": ["a", "a@", "@b", ".a@b.c", "a..b@c.d", "a b@c.d", "a" * 65 + "@b.c", "a@b@"],
    "hostname": ["-a", "a-", "a..b", "a_b", "", "a" * 64, "a.com\n", "a." * 200],
    "ipv4": ["256.0.0.1", "::1"],
    "ipv6": ["127.0.0.1", "x"],
    "phone": ["12", "letters", "1" * 20],
    "time": ["12:00", "25:00:00", "x"],
    "uri": ["no-scheme", "http://a b", "http://a/%zz", ""],
    "uuid": ["12345678123456781234567812345678", "x"],
}


def test_every_format_has_examples_here() -> None:
    assert set(GOOD) == set(BAD) == set(FORMATS)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in GOOD.items() for text in texts])
def test_a_right_text_passes(name: str, text: str) -> None:
    assert FORMATS[name][1](text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_a_wrong_text_does_not(name: str, text: str) -> None:
    assert not FORMATS[name][1](text)


async def test_a_format_is_in_the_schema_and_checked() -> None:
    def send(to: Annotated[str, Format("email")], cc: Annotated[str | None, Format("email")] = None) -> str:
        return to

    assert schema_of(send)["properties"] == {
        "to": {"type": "string", "format": "email"},
        "cc": {"type": "string", "format": "email"},
    }
    assert (await call(send, {"to": "a@b.c", "cc": None}))["content"][0]["text"] == "a@b.c"
    with pytest.raises(ToolError, match=r"^to: must be an email address$"):
        await call(send, {"to": "nobody"})


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"colour.*uuid"):
        Format("colour")


@pytest.mark.timeout(20)  # quadratic checks would take minutes
@pytest.mark.parametrize("name", FORMATS)
def test_long_texts_are_refused_without_much_ado(name: str) -> None:
    letters = "a" * 200_000
    for text in (letters, "a." * 100_000, "1-" * 100_000, "a@" * 100_000, "%20" * 70_000 + "\n", "+" + " " * 200_000):
        assert not FORMATS[name][1](text)
