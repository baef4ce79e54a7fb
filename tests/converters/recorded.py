"""A server with the recorded tools of the corpus. Each lists its own schemas, and returns an example of its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from funcmcp import MCPServer
from funcmcp.middleware import RequestContext, on_list
from tests.converters.examples import example

TOOLS_FILE = Path(__file__).with_name("corpus_tools.json")
_NULL = {"type": "null"}


def tools() -> dict[str, dict[str, Any]]:
    """Return the recorded tools by name. Of tools with one name and different schemas, the later ones get a number."""
    named: dict[str, dict[str, Any]] = {}
    for listed in json.loads(TOOLS_FILE.read_text(encoding="utf-8")).values():
        for tool in listed:
            name, number = tool["name"], 2
            while name in named and {**named[name], "name": tool["name"]} != tool:
                name, number = f"{tool['name']}_{number}", number + 1
            named[name] = {**tool, "name": name}
    return named


def _accepting_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an input schema that takes null for arguments that are not required.

    funcmcp does so where it makes the schema. Here the schemas are hand-written.
    """
    required = schema.get("required", [])
    properties = {
        name: part if name in required else {"anyOf": [part, _NULL]} for name, part in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _add(mcp: MCPServer, tool: dict[str, Any]) -> None:
    result = example(tool["outputSchema"]) if "outputSchema" in tool else "done"

    def run(arguments: dict[str, Any]) -> Any:
        return result

    options = {"output_schema": tool["outputSchema"]} if "outputSchema" in tool else {}
    accepted = _accepting_null(tool["inputSchema"])
    mcp.tool(tool["name"], description=tool["description"], input_schema=accepted, **options)(run)


@on_list
def as_recorded(context: RequestContext, definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the schemas as they are recorded."""
    return [{**definition, "inputSchema": TOOLS[definition["name"]]["inputSchema"]} for definition in definitions]


TOOLS = tools()
mcp = MCPServer("recorded", middleware=[as_recorded])
for _tool in TOOLS.values():
    _add(mcp, _tool)
