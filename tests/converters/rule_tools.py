"""A server with the tools that break the rules of ``funcmcp inspect --clients``, and with their neighbours."""

from __future__ import annotations

from typing import Any

from funcmcp import MCPServer
from funcmcp.middleware import RequestContext, on_list
from funcmcp_cli.client_rules.rules import RULES
from tests.cli.client_rules.test_rules import CASES

_REFUSED_BY_ALL = {"several-types", "output-pattern", "left-out", "name-characters"}
"""Rules whose tools would take all others with them, or which funcmcp does not register."""


def tools() -> dict[str, dict[str, Any]]:
    """Return the tools by name. A tool whose name does not matter is called after its rule."""
    definitions = {}
    for rule in RULES:
        if rule.kind == "tool" and rule.word not in _REFUSED_BY_ALL:
            broken, accepted, _ = CASES[rule.word]
            for prefix, definition in (("broken", _first(broken)), ("accepted", _first(accepted))):
                name = definition["name"]
                if name == "order":
                    name = f"{prefix}_{rule.word.replace('-', '_')}"
                definitions[name] = {**definition, "name": name}
    return definitions


def _first(definitions: Any) -> dict[str, Any]:
    """Return a definition, or the first one of several."""
    definition: dict[str, Any] = definitions[0] if isinstance(definitions, list) else definitions
    return definition


TOOLS = tools()
BROKEN = {name.removeprefix("broken_").replace("_", "-"): name for name in TOOLS if name.startswith("broken_")}
"""By rule, the tool that breaks it."""


def serving(definitions: dict[str, dict[str, Any]]) -> MCPServer:
    """Return a server that lists tools as they are: registration would refuse some of the schemas."""

    @on_list
    def as_defined(context: RequestContext, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [definitions[definition["name"]] for definition in listed]

    def done(arguments: dict[str, Any]) -> str:
        return "done"

    server = MCPServer("rules", middleware=[as_defined])
    for name in definitions:
        server.tool(name, input_schema={"type": "object"})(done)
    return server


mcp = serving(TOOLS)
