"""Records the tools of the corpus as funcmcp lists them: `python -m tests.converters.record` writes corpus_tools.json.

It runs the servers of `make corpus`. Texts are replaced, because a converter copies them: what remains of each tool is
its name, its schemas, and whether it has descriptions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.corpus.run import install, observe, servers

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = Path(__file__).with_name("corpus_tools.json")
_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_DATA = frozenset({"default", "enum", "const", "examples"})


def recorded() -> dict[str, list[dict[str, Any]]]:
    """Return the tools of each server of the corpus that runs on funcmcp."""
    running = [server for server in servers() if "fails" not in server.options]
    install(running)
    return {
        f"{server.name} {server.version} ({server.library})": [*_shortened(observe(server, "funcmcp")["tools"])]
        for server in running
    }


def _shortened(tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for tool in tools:
        members = ("name", "description", "inputSchema", "outputSchema")
        yield {member: without_texts(tool[member]) for member in members if member in tool} | {
            "description": "Text." if tool.get("description") else ""
        }


def without_texts(schema: Any) -> Any:
    """Return a schema in which each description that is not empty is the same word."""
    if isinstance(schema, list):
        return [without_texts(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {keyword: _without_texts_of(keyword, value) for keyword, value in schema.items() if keyword != "examples"}


def _without_texts_of(keyword: str, value: Any) -> Any:
    if keyword == "description" and isinstance(value, str):
        return "Text." if value else ""
    if keyword in _MAPS and isinstance(value, dict):
        return {name: without_texts(member) for name, member in value.items()}
    return value if keyword in _DATA else without_texts(value)


def main() -> None:
    """Write the file, a tool a line."""
    lines = [
        f"  {json.dumps(server)}: [\n"
        + ",\n".join(f"    {json.dumps(tool, ensure_ascii=False)}" for tool in tools)
        + "\n  ]"
        for server, tools in recorded().items()
    ]
    TOOLS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
