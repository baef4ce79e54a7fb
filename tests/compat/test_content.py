"""Content classes with the arguments of other frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import funcmcp.compat
from funcmcp.compat import (
    FastMCP,
    FileResource,
    Message,
    PromptResult,
    ResourceContent,
    ResourceResult,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_results_of_resources_and_prompts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    mcp = FastMCP("r")
    mcp.add_resource(FileResource(uri="file:///a.json", path=tmp_path / "a.json", mime_type="application/json"))

    @mcp.resource("note://all")
    def notes() -> ResourceResult:
        return ResourceResult([ResourceContent("one"), ResourceContent({"two": 2}), ResourceContent(b"3")])

    @mcp.prompt
    def ask() -> PromptResult:
        return PromptResult([Message("Hello"), Message({"a": 1}, role="assistant")], description="A greeting")

    assert (await mcp.read_resource("file:///a.json"))["contents"] == [
        {"uri": "file:///a.json", "mimeType": "application/json", "blob": "e30="}
    ]
    assert (await mcp.read_resource("note://all"))["contents"] == [
        {"uri": "note://all", "mimeType": "text/plain", "text": "one"},
        {"uri": "note://all", "mimeType": "application/json", "text": '{"two":2}'},
        {"uri": "note://all", "mimeType": "application/octet-stream", "blob": "Mw=="},
    ]
    prompt = await mcp.get_prompt("ask", {})
    assert prompt.description == "A greeting"
    assert prompt["messages"][1] == {"role": "assistant", "content": {"type": "text", "text": '{"a":1}'}}


def test_names_that_are_elsewhere_say_where() -> None:
    with pytest.raises(ImportError, match=r"funcmcp\.client\.Client"):
        from funcmcp.compat import Client  # type: ignore[attr-defined] # noqa: F401 - it does not exist
    with pytest.raises(ImportError, match=r"funcmcp\.auth\.OAuthProxy"):
        _: Any = funcmcp.compat.GitHubTokenVerifier  # type: ignore[attr-defined]
