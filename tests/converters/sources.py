"""The servers whose tools the clients convert, and what is called of each."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp.client import Client
from tests.converters import ordinary
from tests.converters.examples import example
from tests.converters.libraries import REPOSITORY, python
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
_RECORDED_CALLS = 8
"""Every eighth of the recorded tools is called."""


@dataclass(frozen=True)
class Source:
    """A server.

    Attributes:
        group: The column of the table that counts its tools.
        file: The module with the server, or an ASGI application, as `mcp`.
        calls: Arguments by tool. None for examples of some recorded tools.
        environment: The virtual environment in .servers that runs it; the tests' own by default.
        extras: `resource` and `prompt` of its plan.
    """

    group: str
    file: Path
    calls: dict[str, dict[str, Any]] | None
    environment: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)


_ORDINARY_CALLS = {tool.name: tool.arguments for tool in ordinary.TOOLS} | {"picture": {}, "pictures": {}}
_ORDINARY_EXTRAS = {
    "resource": {"uri": "report://today", "name": "report"},
    "prompt": {"name": "suggest", "arguments": {"topic": "tea"}},
}
SAMPLES = REPOSITORY / "samples"
OWN = (
    Source("ordinary", HERE / "ordinary_funcmcp.py", _ORDINARY_CALLS, extras=_ORDINARY_EXTRAS),
    Source(
        "samples",
        SAMPLES / "orders" / "server.py",
        {
            "search_menu": {"query": "pizza"},
            "create_order": {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 2}]},
            "sales_report": {"first_day": "2030-01-01", "last_day": "2030-01-02"},
        },
        extras={
            "resource": {"uri": "menu://today", "name": "menu"},
            "prompt": {"name": "suggest_meal", "arguments": {"guests": "2"}},
        },
    ),
    Source(
        "samples",
        SAMPLES / "everything" / "server.py",
        {
            "test_simple_text": {},
            "test_image_content": {},
            "test_audio_content": {},
            "test_embedded_resource": {},
            "test_multiple_content_types": {},
            "json_schema_2020_12_tool": {"name": "Ada", "email": "ada@example.com"},
            "test_x_mcp_header": {"region": "Oslo"},
        },
        extras={
            "resource": {"uri": "test://static-binary", "name": "static_binary"},
            "prompt": {"name": "test_prompt_with_arguments", "arguments": {"arg1": "Italy", "arg2": "Rome"}},
        },
    ),
    Source("samples", SAMPLES / "apps" / "server.py", {"place_order": {"table": 1, "dishes": ["soup"]}}),
    Source("samples", SAMPLES / "audit_log" / "server.py", {"transfer": {"amount": 1, "to": "Ada"}}),
    Source("samples", SAMPLES / "azure" / "own_endpoint" / "function_app.py", {"now": {}}),
    Source("corpus", HERE / "recorded.py", None),
)
"""Servers on funcmcp."""
PEERS = (
    Source("FastMCP", HERE / "ordinary_fastmcp.py", _ORDINARY_CALLS, "differential", _ORDINARY_EXTRAS),
    Source("SDK", HERE / "ordinary_sdk.py", _ORDINARY_CALLS, "differential", _ORDINARY_EXTRAS),
)
"""The ordinary tools on other frameworks."""


@dataclass(frozen=True)
class Served:
    """A running server.

    Attributes:
        source: The server.
        tools: The tools that it lists for models, by name.
        plan: What the clients do with it.
    """

    source: Source
    tools: dict[str, dict[str, Any]]
    plan: dict[str, Any]


@contextmanager
def serve_all(sources: Sequence[Source], folder: Path) -> Iterator[list[Served]]:
    """Serve several servers until the block ends. Samples write their files to the folder."""
    files = {"ORDERS_DB": str(folder / "orders.db"), "AUDIT_FILE": str(folder / "audit.jsonl")}
    environment = {"PYTHONPATH": str(REPOSITORY), **files}
    with ExitStack() as stack:
        served = []
        for source in sources:
            interpreter = None if source.environment is None else python(source.environment)
            server = stack.enter_context(serve(source.file, folder=REPOSITORY, env=environment, python=interpreter))
            tools = asyncio.run(_listed(server.url))
            calls = _examples(tools) if source.calls is None else source.calls
            served.append(Served(source, tools, {"url": server.url, "calls": calls, **source.extras}))
        yield served


async def _listed(url: str) -> dict[str, dict[str, Any]]:
    async with Client(url) as client:
        return {tool["name"]: tool for tool in await client.list_tools() if _is_for_models(tool)}


def _is_for_models(tool: dict[str, Any]) -> bool:
    visibility: list[str] = tool.get("_meta", {}).get("ui", {}).get("visibility", ["model"])
    return "model" in visibility


def _examples(tools: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: example(tools[name]["inputSchema"]) for name in list(tools)[::_RECORDED_CALLS]}
