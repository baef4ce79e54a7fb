"""The ``_meta`` of a request in compat: a mapping with attributes, also behind a proxy."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import Context, FastMCP, create_proxy
from funcmcp.testing import Client


def recording(seen: list[Any]) -> FastMCP:
    mcp = FastMCP("Backend")

    @mcp.tool
    def look(ctx: Context) -> str:
        meta = ctx.request_context.meta
        seen.append((dict(meta).get("example.com/a"), meta.progressToken == meta.progress_token))
        seen.append(meta.model_extra.get("example.com/a"))
        with pytest.raises(AttributeError, match="has no member 'other'"):
            _ = meta.other
        return "ok"

    return mcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("is_proxied", [False, True])
async def test_tools_read_the_meta_as_a_mapping_and_as_attributes(is_proxied: bool, revision: str) -> None:
    seen: list[Any] = []
    mcp = recording(seen)
    async with Client(create_proxy(mcp) if is_proxied else mcp, revision=revision) as client:
        result = await client.request("tools/call", {"name": "look", "_meta": {"example.com/a": {"b": 1}}})
    assert result["content"][0]["text"] == "ok"
    assert seen == [({"b": 1}, True), {"b": 1}]
