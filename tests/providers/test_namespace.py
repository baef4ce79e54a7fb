"""Names and URIs with a prefix. `tests/app/test_mounting.py` has the cases of mounted servers."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp import MCPServer
from funcmcp._providers import namespace as namespace_module
from funcmcp._server.catalog.features import Prompt, RawResponse, Resource, Tool
from funcmcp.client import Client
from funcmcp.content import EmbeddedResource, ResourceLink
from funcmcp.transforms import Namespace
from tests.server.parts import prompt, resource, template, tool


async def test_a_server_gives_its_own_features_a_prefix() -> None:
    mcp = MCPServer("shop")
    mcp.tool("add")(lambda: "add")
    mcp.resource("data://info", name="info")(lambda: "info")
    mcp.add_transform(Namespace("shop"))
    assert (await mcp.call_tool("shop_add")).text == "add"
    result = await mcp.read_resource("data://shop/info")
    assert (result.text, result.contents[0].uri) == ("info", "data://shop/info")


def test_names_and_uris_before_the_prefix_are_known() -> None:
    namespace = Namespace("shop")
    assert namespace.source_key(Tool, "shop_add") == "add"
    assert namespace.source_key(Prompt, "add") == "add"
    assert namespace.source_key(Resource, "data://shop/info") == "data://info"
    assert namespace.source_key(Resource, "shop+urn:info") == "urn:info"


@pytest.mark.parametrize("prefix", ["", "a b", "_a", "a" * 64, 1])
def test_a_malformed_prefix_is_refused(prefix: object) -> None:
    with pytest.raises(ValueError, match="prefix must have letters"):
        Namespace(prefix)  # type: ignore[arg-type]


PREFIXES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}", fullmatch=True)
SCHEMES = st.from_regex(r"[a-z][a-z0-9+.-]{0,8}", fullmatch=True)
PATHS = st.text(string.ascii_letters + string.digits + "/:.?#[]@%+-_~{}", max_size=30)
URIS = st.builds("{}{}{}".format, SCHEMES, st.sampled_from([":", "://"]), PATHS)


@given(PREFIXES, URIS)
def test_a_uri_with_a_prefix_leads_back_to_the_uri(prefix: str, uri: str) -> None:
    namespace = Namespace(prefix)
    exposed = namespace.uri(uri)
    assert namespace.source_uri(exposed) == uri
    assert namespace.may_have(Resource, exposed)
    assert exposed.partition(":")[0].replace("+", "a").replace("-", "a").replace(".", "a").isalnum()
    assert exposed[0].isalpha()


@given(PREFIXES, PREFIXES, URIS)
def test_a_uri_with_two_prefixes_leads_back_to_the_uri(inner: str, outer: str, uri: str) -> None:
    first, second = Namespace(inner), Namespace(outer)
    assert first.source_uri(second.source_uri(second.uri(first.uri(uri)))) == uri


@given(PREFIXES, URIS)
def test_a_scheme_stays_what_clients_look_at(prefix: str, uri: str) -> None:
    if "://" in uri:
        assert Namespace(prefix).uri(uri).partition("://")[0] == uri.partition("://")[0]


@pytest.mark.parametrize(
    ("uri", "exposed"),
    [
        ("memo:today", "my-docs+memo:today"),
        ("urn:isbn:0451450523", "my-docs+urn:isbn:0451450523"),
        ("file:///etc/hosts", "file://my_docs//etc/hosts"),
        ("ui://clock/view", "ui://my_docs/clock/view"),
    ],
)
def test_a_prefix_is_in_the_authority_or_before_the_scheme(uri: str, exposed: str) -> None:
    assert Namespace("my_docs").uri(uri) == exposed
    assert Namespace("my_docs").source_uri(exposed) == uri


def test_a_prefix_that_begins_with_a_digit_is_no_scheme() -> None:
    assert Namespace("2fa").uri("memo:a") == "x2fa+memo:a"


async def test_links_in_results_of_mounted_servers_can_be_read() -> None:
    billing, mcp = MCPServer("billing"), MCPServer("shop")
    billing.resource("memo:rates", name="rates")(lambda: "3 %")
    links_of_tool = [ResourceLink("memo:rates", name="rates"), ResourceLink("https://example.com", name="x")]
    billing.tool("links")(lambda: links_of_tool)
    billing.prompt("page")(lambda: EmbeddedResource("memo:rates", text="3 %"))
    mcp.mount(billing, prefix="b")
    async with Client(mcp) as client:
        links = (await client.call_tool("b_links")).content
        assert [link["uri"] for link in links] == ["b+memo:rates", "https://example.com"]
        assert (await client.read_resource(links[0]["uri"])).text == "3 %"
        message = (await client.get_prompt("b_page")).messages[0]
        assert message["content"]["resource"]["uri"] == "b+memo:rates"


async def test_links_behind_the_middleware_of_a_mounted_server_change_too() -> None:
    link = {"type": "resource_link", "uri": "memo:a", "name": "a"}

    async def raw(_context: Any, _arguments: Any) -> Any:
        return RawResponse({"jsonrpc": "2.0", "id": 1, "result": {"content": [link]}})

    async def failed(_context: Any, _arguments: Any) -> Any:
        return RawResponse({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}})

    namespace = Namespace("b")
    changed: Any = namespace(tool("t", raw))
    assert (await changed.handler(None, {})).message["result"]["content"][0]["uri"] == "b+memo:a"
    unchanged: Any = namespace(tool("t", failed))
    assert (await unchanged.handler(None, {})).message["error"]["code"] == 1


def test_resources_know_their_uri_before_all_prefixes() -> None:
    inner, outer = Namespace("a"), Namespace("b")
    listed: Any = outer(inner(resource("memo:x")))  # type: ignore[arg-type]
    dynamic: Any = outer(inner(template("data://{day}")))  # type: ignore[arg-type]
    assert (listed.key, listed.source_uri(listed.key)) == ("b+a+memo:x", "memo:x")
    assert dynamic.source_uri("data://b/a/monday") == "data://monday"


def test_names_tell_what_a_prefix_may_have() -> None:
    namespace = Namespace("shop")
    assert namespace.may_have(Tool, "shop_add")
    assert not namespace.may_have(Prompt, "add")
    assert not namespace.may_have(Resource, "data://info")
    assert isinstance(namespace(prompt("add")), Prompt)


def test_the_last_uris_that_clients_load_themselves_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server may list other ones each time."""
    monkeypatch.setattr(namespace_module, "_MAX_WEB_URIS", 3)
    namespace = Namespace("shop")
    for number in range(10):
        namespace(resource(f"https://example.com/{number}"))
    assert list(namespace._web_uris) == [f"https://example.com/{number}" for number in (7, 8, 9)]


def test_a_link_is_compared_with_few_templates_of_uris_that_clients_load_themselves() -> None:
    """Another server writes the links and the templates: 10,000 of each would stop the event loop for minutes."""
    namespace = Namespace("shop")
    for number in range(30):
        namespace(template(f"https://example.com/{number}/{{name}}"))
    assert namespace._link("https://example.com/10/a") == "https://shop/example.com/10/a"
    assert namespace._link("https://example.com/9/a") == "https://example.com/9/a"
    assert namespace._link("https://example.com/40/a") == "https://example.com/40/a"
