"""The constants of MCP Apps."""

from __future__ import annotations

import pytest

from funcmcp._protocol.apps import EXTENSION, PAGE_TYPE, is_page


@pytest.mark.parametrize(
    ("uri", "page"), [("ui://board", True), ("ui://", True), ("UI://board", False), ("ui:board", False), ("", False)]
)
def test_only_uris_with_the_scheme_of_pages_are_pages(uri: str, page: bool) -> None:
    assert is_page(uri) is page


def test_the_names_are_those_of_the_extension() -> None:
    assert EXTENSION == "io.modelcontextprotocol/ui"
    assert PAGE_TYPE == "text/html;profile=mcp-app"
