"""FastMCP's transforms that offer resources and prompts as tools, whose results are texts in a wrapper."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.asgi.application import ASGIApplication
from funcmcp._compat.transforms import BuiltInTransform
from funcmcp._objects.public_names import public
from funcmcp._providers import features_as_tools

if TYPE_CHECKING:
    from funcmcp._server.catalog.transformed import AnyTransform

_WRAPPED = {
    "type": "object",
    "properties": {"result": {"type": "string"}},
    "required": ["result"],
    "x-fastmcp-wrap-result": True,
}
"""The output schema of FastMCP for a function that returns a text."""


def _wrapped(text: str) -> dict[str, Any]:
    """Return the result of a function that returns a text."""
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"result": text},
        "_meta": {"fastmcp": {"wrap_result": True}},
    }


class _Resources(features_as_tools.ResourcesAsTools):
    output_schema = _WRAPPED

    def text_result(self, text: str) -> dict[str, Any]:
        return _wrapped(text)

    def resource_result(self, result: dict[str, Any]) -> dict[str, Any]:
        contents = [
            {"content": part.get("text", part.get("blob")), "mime_type": part.get("mimeType")}
            for part in result["contents"]
        ]
        return _wrapped(contents[0]["content"] if len(contents) == 1 else json.dumps(contents))


class _Prompts(features_as_tools.PromptsAsTools):
    output_schema = _WRAPPED

    def text_result(self, text: str) -> dict[str, Any]:
        return _wrapped(text)


class _AsTools(BuiltInTransform):
    """A transform that adds tools for other components of a server.

    Args:
        provider: The server.

    Raises:
        TypeError: It is not a server.
    """

    def __init__(self, provider: Any) -> None:
        if not isinstance(provider, ASGIApplication):
            name = type(self).__name__
            raise TypeError(
                f"{name} requires a FastMCP server instance, not a {type(provider).__name__}. Pass the server: "
                f"{name}(mcp)"
            )
        self._provider = provider

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._provider!r})"


@public("funcmcp.compat")
class ResourcesAsTools(_AsTools):
    """Adds the tools ``list_resources`` and ``read_resource``: ``mcp.add_transform(ResourcesAsTools(mcp))``."""

    def native(self) -> list[AnyTransform]:
        """Return the transform of funcmcp that does the same."""
        return [_Resources(self._provider, templates=False)]


@public("funcmcp.compat")
class PromptsAsTools(_AsTools):
    """Adds the tools ``list_prompts`` and ``get_prompt``: ``mcp.add_transform(PromptsAsTools(mcp))``."""

    def native(self) -> list[AnyTransform]:
        """Return the transform of funcmcp that does the same."""
        return [_Prompts(self._provider, prompts=False)]
