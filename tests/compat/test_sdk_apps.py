"""MCP Apps in the classes of the official SDK: tools and their pages."""

from __future__ import annotations

import pytest

from funcmcp.compat import Context, MCPServer
from funcmcp.compat.mcp import Apps, ResourceCsp, ResourcePermissions, TextResource, client_supports_apps
from funcmcp.testing import Client

PAGE = "text/html;profile=mcp-app"


def clock() -> MCPServer:
    apps = Apps()

    @apps.tool(resource_uri="ui://clock", visibility=["app"], meta={"a": 1}, title="Time")
    def get_time(ctx: Context) -> str:
        return "page" if client_supports_apps(ctx) else "12:00"

    apps.add_html_resource(
        "ui://clock",
        "<p>12:00</p>",
        csp=ResourceCsp(connect_domains=["https://time.example"]),
        permissions=ResourcePermissions(clipboard_write={}),
        prefers_border=True,
    )
    apps.add_resource(TextResource("ui://plain", "<p></p>"))
    return MCPServer("Clock", extensions=[apps])


async def test_a_tool_has_a_page() -> None:
    async with Client(clock()) as client:
        assert "io.modelcontextprotocol/ui" in client.capabilities["extensions"]
        (tool,) = await client.list_tools()
        assert tool["_meta"] == {"a": 1, "ui": {"resourceUri": "ui://clock", "visibility": ["app"]}}
        assert (await client.call_tool("get_time")).text == "12:00"
        for uri in ("ui://clock", "ui://plain"):
            (contents,) = (await client.read_resource(uri))["contents"]
            assert contents["mimeType"] == PAGE
        page = (await client.read_resource("ui://clock"))["contents"][0]
        assert page["_meta"]["ui"] == {
            "csp": {"connectDomains": ["https://time.example"]},
            "permissions": {"clipboardWrite": {}},
            "prefersBorder": True,
        }


def test_pages_that_the_sdk_refuses_are_refused() -> None:
    apps = Apps()
    with pytest.raises(ValueError, match="ui:// scheme"):
        apps.tool(resource_uri="https://clock")
    with pytest.raises(ValueError, match="owns _meta"):
        apps.tool(resource_uri="ui://clock", meta={"ui": {}})
    with pytest.raises(ValueError, match="are served as"):
        apps.add_resource(TextResource("ui://a", "a", mime_type="text/css"))
    apps.tool(resource_uri="ui://lost")(test_pages_that_the_sdk_refuses_are_refused)
    with pytest.raises(ValueError, match="no such resource is registered"):
        MCPServer("Clock", extensions=[apps])
