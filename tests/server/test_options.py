"""What a server says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol import adaptation
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.options import ProtocolOptions, ServerInfo, ServerOptions, shown_types
from tests import schemas

ICON = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}


@pytest.mark.parametrize("value", ["yes", 1, [ValueError, "OSError"], object])
def test_show_errors_takes_only_types_of_exceptions(value: Any) -> None:
    with pytest.raises(ValueError, match="show_errors must be True, False, or types of exceptions"):
        shown_types(value, "show_errors")


def test_only_what_is_set_is_told() -> None:
    assert ServerOptions("orders").implementation() == {"name": "orders", "version": "0.1.0"}


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_everything_that_is_set_is_told_in_valid_form(date: str) -> None:
    options = ServerOptions(
        "orders",
        version="2.0.0",
        info=ServerInfo(title="Orders", description="Takes orders", icons=(ICON,), website_url="https://example.com"),
    )
    told = options.implementation()
    assert told == {
        "name": "orders",
        "version": "2.0.0",
        "title": "Orders",
        "description": "Takes orders",
        "icons": [ICON],
        "websiteUrl": "https://example.com",
    }
    schemas.validate_as(adaptation.implementation(told, REVISIONS[date]), date, "Implementation")


@pytest.mark.parametrize(
    ("revisions", "unknown"), [([], "none"), (["2025-06-18", "2025-06-19"], "2025-06-19"), (["x", "y"], "x, y")]
)
def test_a_revision_is_a_known_one(revisions: list[str], unknown: str) -> None:
    with pytest.raises(
        ValueError, match=rf"ProtocolOptions\.revisions must be some of 2024-11-05, .*; got {unknown}\.$"
    ):
        ProtocolOptions(revisions=revisions)


def test_one_string_is_not_a_list_of_revisions() -> None:
    with pytest.raises(
        TypeError, match=r"^ProtocolOptions\.revisions must be a list of dates\. Write \['2025-06-18'\]\.$"
    ):
        ProtocolOptions(revisions="2025-06-18")


@pytest.mark.parametrize(
    "wrong",
    [
        {"page_size": 0},
        {"page_size": -1},
        {"list_ttl": -0.001},
        {"list_ttl": float("inf")},
        {"read_ttl": float("nan")},
        {"read_ttl": -1},
    ],
)
def test_a_page_or_a_time_that_is_none_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ProtocolOptions(**wrong)  # type: ignore[arg-type]
