"""MCP Apps with FastMCP's names: ``app=`` of tools and resources, and `FastMCPApp`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from funcmcp.compat import (
    UI_EXTENSION_ID,
    UI_MIME_TYPE,
    AppConfig,
    Context,
    FastMCP,
    FastMCPApp,
    RegexSearchTransform,
    ResourceCSP,
    Tool,
    ToolTransform,
    ToolTransformConfig,
    Transform,
    VersionFilter,
    resolve_ui_mime_type,
    restrict_tag,
)
from funcmcp.compat.fastmcp.server.providers.addressing import (
    hash_tool,
    hashed_backend_name,
    parse_hashed_backend_name,
)
from funcmcp.testing import Client

PAGE = "ui://lights/panel.html"


def lights() -> str:
    return "on"


class ConfigOfALibrary(BaseModel):
    """A config like FastMCP's own, which a library for FastMCP passes."""

    resource_uri: str = Field(serialization_alias="resourceUri")
    domain: str | None = None


CONFIGS = [AppConfig(resource_uri=PAGE), {"resourceUri": PAGE}, ConfigOfALibrary(resource_uri=PAGE)]


@pytest.mark.parametrize("app", CONFIGS)
async def test_a_tool_names_its_page(app: Any) -> None:
    mcp = FastMCP("Lights")
    mcp.tool(app=app, meta={"custom": 1})(lights)
    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
    assert tool["_meta"]["ui"] == {"resourceUri": PAGE}
    assert tool["_meta"]["custom"] == 1


async def test_a_page_has_rules() -> None:
    mcp = FastMCP("Lights")

    @mcp.resource(PAGE, app=AppConfig(csp=ResourceCSP(connect_domains=["https://a.example"]), prefers_border=True))
    def panel() -> str:
        return "<html></html>"

    rules = {"csp": {"connectDomains": ["https://a.example"]}, "prefersBorder": True}
    async with Client(mcp) as client:
        (resource,) = await client.list_resources()
        contents = (await client.read_resource(PAGE)).contents[0]
    assert (resource.mime_type, resource["_meta"]["ui"]) == (UI_MIME_TYPE, rules)
    assert (contents.mime_type, contents["_meta"]["ui"]) == (UI_MIME_TYPE, rules)


@pytest.mark.parametrize("app", [AppConfig(resource_uri=PAGE), AppConfig(visibility=["app"])])
def test_a_page_takes_no_settings_of_tools(app: AppConfig) -> None:
    with pytest.raises(ValueError, match="cannot be set on resources"):
        FastMCP("Lights").resource(PAGE, app=app)(lights)


def test_components_of_prefab_are_refused() -> None:
    with pytest.raises(ImportError, match="Prefab"):
        FastMCP("Lights").tool(app=True)(lights)
    with pytest.raises(ImportError, match="Prefab"):
        FastMCPApp("lights").ui(lights)


async def test_an_app_has_tools_for_pages_and_for_the_model() -> None:
    app = FastMCPApp("lights")
    app.tool("switch")(lights)
    app.tool("both", model=True)(lights)
    app.ui("open", app=AppConfig(resource_uri=PAGE))(lights)
    app.add_tool(Tool(lights, "added"))
    async with Client(FastMCP("Lights", providers=[app])) as client:
        ui = {tool.name: tool["_meta"]["ui"] for tool in await client.list_tools()}
    assert ui == {
        "switch": {"visibility": ["app"]},
        "both": {"visibility": ["app", "model"]},
        "open": {"resourceUri": PAGE, "visibility": ["model"]},
        "added": {"visibility": ["app"]},
    }


@pytest.mark.parametrize("namespace", ["", "home"])
async def test_pages_call_a_tool_by_its_hash_under_any_name(namespace: str) -> None:
    app = FastMCPApp("lights")
    app.tool("switch")(lights)
    app.ui("open", app=AppConfig(resource_uri=PAGE))(lights)
    mcp = FastMCP("Lights")
    mcp.add_provider(app, namespace=namespace)
    async with Client(mcp) as client:
        listed = (await client.list_tools())[0]
        assert listed["_meta"]["fastmcp"] == {"app": "lights", "tool_hash": hash_tool("lights", "switch"), "tags": []}
        assert (await client.call_tool(hashed_backend_name("lights", "switch"), {})).text == "on"
        for name in (hashed_backend_name("lights", "open"), hashed_backend_name("other", "switch")):
            assert "Unknown tool" in (await client.call_tool(name, {}, raise_on_error=False)).text
    assert parse_hashed_backend_name(hashed_backend_name("lights", "switch")) == (
        hash_tool("lights", "switch"),
        "switch",
    )


SWITCH = hashed_backend_name("lights", "switch")


class Refusing(Transform):
    """Refuses the lookup of a tool, which it lists."""

    async def get_tool(self, name: str, call_next: Any, *, version: Any = None) -> Any:
        return None if name == "switch" else await call_next(name, version=version)


class RefusingApp(FastMCPApp):
    """An app that refuses its tool."""

    async def get_tool(self, name: str, version: Any = None) -> Any:
        return None if name == "switch" else await super().get_tool(name, version)


def hidden_by_name(mcp: FastMCP) -> None:
    mcp.disable(names={"switch"})


def refused_by_a_transform(mcp: FastMCP) -> None:
    mcp.add_transform(Refusing())


@pytest.mark.parametrize(
    ("hide", "app_class"),
    [(hidden_by_name, FastMCPApp), (refused_by_a_transform, FastMCPApp), (lambda _mcp: None, RefusingApp)],
)
async def test_pages_do_not_call_a_tool_that_is_hidden_or_refused(hide: Any, app_class: type[FastMCPApp]) -> None:
    app = app_class("lights")
    app.tool("switch")(lights)
    mcp = FastMCP("Lights", providers=[app])
    hide(mcp)
    above = FastMCP("Above")
    servers = [mcp]
    if not mcp.has_view:  # with which it can't be mounted
        above.mount(mcp, "child")
        servers.append(above)
    for server in servers:
        async with Client(server) as client:
            assert "Unknown tool" in (await client.call_tool(SWITCH, {}, raise_on_error=False)).text


async def test_pages_call_a_renamed_tool_and_the_newest_version_that_is_shown() -> None:
    app = FastMCPApp("lights")
    app.tool("switch", version="1")(lights)
    app.tool("switch", version="2")(lambda: "dark")
    mcp = FastMCP("Lights", providers=[app])
    above = FastMCP("Above")
    above.mount(mcp, "child", tool_names={"switch": "toggle"})
    for transform, text in ((None, "dark"), (VersionFilter(version_lt="2"), "on")):
        if transform is not None:
            mcp.add_transform(transform)
        for server in (mcp, above):
            async with Client(server) as client:
                assert (await client.call_tool(SWITCH, {})).text == text


@pytest.mark.parametrize("transforms", [[], [Transform()]])
async def test_pages_call_the_tool_of_their_app_beside_one_of_its_name(transforms: list[Any]) -> None:
    app = FastMCPApp("lights")
    app.tool("switch")(lights)
    mcp = FastMCP("Lights", providers=[app], transforms=transforms)
    mcp.tool(name="switch")(lambda: "own")
    async with Client(mcp) as client:
        assert (await client.call_tool(SWITCH, {})).text == "on"
        assert (await client.call_tool("switch", {})).text == "own"


@pytest.mark.parametrize("on_provider", [False, True])
async def test_a_check_of_tags_counts_those_before_and_after_the_transforms_of_a_server(on_provider: bool) -> None:
    app = FastMCPApp("lights")
    app.tool("switch", tags={"admin"}, auth=restrict_tag("admin", scopes=["admin"]))(lights)
    mcp = FastMCP("Lights", providers=[app])
    retagged = ToolTransform({"switch": ToolTransformConfig(tags={"public"})})
    (app if on_provider else mcp).add_transform(retagged)
    assert (await mcp.get_tool("switch") is not None) == on_provider


async def test_a_search_does_not_find_the_tools_of_pages() -> None:
    app = FastMCPApp("lights")
    app.tool("switch")(lights)
    app.tool("shared", model=True)(lights)
    mcp = FastMCP("Lights", providers=[app])
    mcp.add_transform(RegexSearchTransform())
    async with Client(mcp) as client:
        result = await client.call_tool("search_tools", {"pattern": "s"})
        assert [tool["name"] for tool in result.structured_content["result"]] == ["shared"]
        assert (await client.call_tool("call_tool", {"name": "shared"})).text == "on"
        refused = await client.call_tool("call_tool", {"name": "switch"})
    assert refused.is_error
    assert "Unknown tool: 'switch'" in refused.text


def test_settings_have_names_of_python_and_of_the_protocol() -> None:
    csp = {"connectDomains": [], "workerDomains": ["https://a.example"]}
    config = AppConfig.model_validate({"resourceUri": PAGE, "csp": csp})
    assert config.resource_uri == PAGE
    assert config.model_dump(by_alias=True, exclude_none=True) == {
        "resourceUri": PAGE,
        "csp": csp,
    }
    assert resolve_ui_mime_type(PAGE, None) == UI_MIME_TYPE
    assert resolve_ui_mime_type(PAGE, "text/html") == "text/html"
    assert resolve_ui_mime_type("data://x", None) is None


@pytest.mark.parametrize(("extensions", "expected"), [({UI_EXTENSION_ID: {}}, "True"), ({}, "False")])
async def test_a_tool_asks_whether_its_client_shows_pages(extensions: dict[str, Any], expected: str) -> None:
    mcp = FastMCP("Lights")

    @mcp.tool
    def shows_pages(context: Context) -> str:
        return str(context.client_supports_extension(UI_EXTENSION_ID))

    async with Client(mcp, extensions=extensions) as client:
        assert (await client.call_tool("shows_pages", {})).content[0]["text"] == expected
