"""Names and URIs of several upstreams: each one that is exposed leads to the upstream that it came from, or is refused.

An upstream says in each result which one it is, and the name or URI that it was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp.client import Client
from funcmcp.upstreams import Upstream
from tests.proxy.scripted import Request, discovered, listening, response, result

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

LONG = "x" * 64
HINTS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


class Named:
    """An upstream with tools, prompts and resources of certain names.

    Args:
        label: Names the upstream.
        names: The names of its tools and prompts.
        uris: The URIs of its resources.
    """

    def __init__(self, label: str, names: Sequence[str], uris: Sequence[str] = ()) -> None:
        self.label = label
        self.names = names
        self.uris = uris

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer a request."""
        if "id" in request.message:
            writer.write(response(result(request, self._result(request.message["method"], request.message["params"]))))
        else:
            writer.write(response(status=202))

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        text = f"{self.label} {params.get('name', params.get('uri'))}"
        results: dict[str, Any] = {
            "server/discover": {**discovered(), "capabilities": {"tools": {}, "prompts": {}, "resources": {}}},
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.names]},
            "prompts/list": {"prompts": [{"name": name} for name in self.names]},
            "resources/list": {"resources": [{"uri": uri, "name": uri} for uri in self.uris]},
            "resources/templates/list": {"resourceTemplates": []},
            "tools/call": {"content": [{"type": "text", "text": text}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]},
            "resources/read": {"contents": [{"uri": params.get("uri"), "text": text}]},
        }
        return {**HINTS, **results[method]}


TABLE: dict[str, list[tuple[str | None, Named]]] = {
    "equal names": [("a", Named("A", ["search"])), ("b", Named("B", ["search"]))],
    "separators in names": [("a", Named("A", ["b_c", "b__c", "_c"])), ("a_b", Named("B", ["d", "_c2"]))],
    "a prefix that is a name": [("a", Named("A", ["a", "a_a"])), ("b", Named("B", ["a", "b"]))],
    "names of 64 characters": [("a", Named("A", [LONG, f"{LONG[1:]}y"])), ("b", Named("B", [LONG]))],
    "other letters": [("a", Named("A", ["X", "y"])), ("b", Named("B", ["x-y", "x.y", "x_y"]))],
    "equal URIs": [
        ("a", Named("A", [], ["file:///x", "memo:x", "ui://page/x"])),
        ("b", Named("B", [], ["file:///x", "memo:x", "ui://page/x"])),
    ],
    "a URI with the prefix of another": [
        ("a", Named("A", [], ["data://b/x"])),
        ("b", Named("B", [], ["data://x", "data://a/b/x"])),
    ],
    "without prefixes": [(None, Named("A", ["one"], ["data://one"])), (None, Named("B", ["two"], ["data://two"]))],
}


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.parametrize("backwards", [False, True])
async def test_each_exposed_name_leads_to_its_own_upstream(case: str, backwards: bool) -> None:
    rows = TABLE[case][::-1] if backwards else TABLE[case]
    with listening(rows[0][1]) as first, listening(rows[1][1]) as second:
        proxy = MCPServer("Proxy")
        for (prefix, _), port in zip(rows, (first, second), strict=True):
            proxy.mount(Upstream(f"http://127.0.0.1:{port}/mcp"), prefix=prefix)
        async with Client(proxy) as client:
            tools = [(await client.call_tool(tool.name)).text for tool in await client.list_tools()]
            prompts = [
                (await client.get_prompt(prompt.name)).messages[0].content["text"]
                for prompt in await client.list_prompts()
            ]
            resources = [
                (await client.read_resource(resource.uri)).contents[0]["text"]
                for resource in await client.list_resources()
            ]
    names = [f"{upstream.label} {name}" for _, upstream in rows for name in upstream.names]
    assert sorted(tools) == sorted(names)
    assert sorted(prompts) == sorted(names)
    assert sorted(resources) == sorted(f"{upstream.label} {uri}" for _, upstream in rows for uri in upstream.uris)


@pytest.mark.parametrize(
    "rows",
    [
        [(None, Named("A", ["same"])), (None, Named("B", ["same"]))],
        [("a", Named("A", ["b_c"])), ("a_b", Named("B", ["c"]))],
    ],
    ids=["no prefixes", "a prefix that continues another"],
)
async def test_a_name_that_two_upstreams_would_have_leads_to_one_of_them_and_is_reported(
    rows: list[tuple[str | None, Named]], caplog: pytest.LogCaptureFixture
) -> None:
    with listening(rows[0][1]) as first, listening(rows[1][1]) as second:
        proxy = MCPServer("Proxy")
        for (prefix, _), port in zip(rows, (first, second), strict=True):
            proxy.mount(Upstream(f"http://127.0.0.1:{port}/mcp"), prefix=prefix)
        async with Client(proxy) as client:
            (tool,) = await client.list_tools()
            answers = [(await client.call_tool(tool.name)).text for _ in range(3)]
    assert len(set(answers)) == 1
    assert answers[0] in {f"{upstream.label} {upstream.names[0]}" for _, upstream in rows}
    assert any(tool.name in record.getMessage() for record in caplog.records)


async def test_short_names_differ_and_lead_to_their_upstream() -> None:
    upstream = Named("A", [f"{LONG[1:]}{letter}" for letter in "abc"])
    with listening(upstream) as port:
        proxy = MCPServer("Proxy")
        proxy.mount(Upstream(f"http://127.0.0.1:{port}/mcp", short_names=True), prefix="a")
        async with Client(proxy) as client:
            names = [tool.name for tool in await client.list_tools()]
            answers = [(await client.call_tool(name)).text for name in names]
    assert len(set(names)) == 3
    assert max(map(len, names)) <= 64
    assert answers == [f"A {name}" for name in upstream.names]
