"""Results for people, and for programs that read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH_OF_PIPES = 160


def print_json(value: object) -> None:
    """Print a JSON document."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_server(facts: Mapping[str, Any]) -> None:
    """Print what `inspect_server` found, the tools as a table."""
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_OF_PIPES
    server = _object(facts["server"])
    named = " ".join(str(server[member]) for member in ("name", "version") if member in server)
    console.print(f"[bold]{escape(named)}[/bold]", f"(MCP {facts['revision']})", highlight=False)
    for text in (server.get("description"), facts["instructions"]):
        if text:
            console.print(escape(str(text)), highlight=False)
    console.print(f"Capabilities: {', '.join(facts['capabilities']) or 'none'}", highlight=False)
    if not facts["tools"]:
        console.print("It has no tools.")
        return
    table = Table("Tool", "Arguments", "Description", show_lines=True)
    for tool in facts["tools"]:
        name, description = str(_object(tool).get("name")), str(_object(tool).get("description") or "")
        table.add_row(f"[bold]{escape(name)}[/bold]", _arguments(_object(tool)), escape(description))
    console.print(table)


def print_result(result: Mapping[str, Any]) -> None:
    """Print a CallToolResult: its texts, or else its structured content; to stderr if it is an error."""
    to_stderr = bool(result.get("isError"))
    content = [_object(block) for block in _list(result.get("content"))]
    if "structuredContent" in result and not any(block.get("type") == "text" for block in content):
        print_json(result["structuredContent"])
    for block in content:
        typer.echo(_shown(block), err=to_stderr)


def _arguments(tool: Mapping[str, Any]) -> str:
    schema = _object(tool.get("inputSchema"))
    names = zip(_names(schema), _object(schema.get("properties")).values(), strict=True)
    return "\n".join(f"[cyan]{escape(name)}[/cyan]: {escape(_kind(member))}" for name, member in names)


def _names(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of an object's members; those that may be left out end with a question mark."""
    required = _list(schema.get("required"))
    return [name if name in required else f"{name}?" for name in _object(schema.get("properties"))]


def _object(value: Any) -> Mapping[str, Any]:
    """Return an object of a server's answer; a server may send anything in its place."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    """Return a list of a server's answer; a server may send anything in its place."""
    return value if isinstance(value, list) else []


def _kind(schema: Any) -> str:
    """Return a schema's type in a few words, such as ``array of string``, ``"low" | "high"`` or ``object of x, y?``."""
    if not isinstance(schema, dict):
        return "any"
    if _list(schema.get("enum")):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for word in ("anyOf", "oneOf"):
        if _list(schema.get(word)):
            return " | ".join(dict.fromkeys(map(_kind, schema[word])))
    kinds = schema.get("type", "any")
    if isinstance(kinds, list):
        return " | ".join(map(str, kinds))
    if kinds == "array":
        return f"array of {_kind(schema.get('items'))}"
    if kinds == "object" and schema.get("properties"):
        return f"object of {', '.join(_names(schema))}"
    return f"{kinds} ({schema['format']})" if "format" in schema else str(kinds)


def _shown(block: Mapping[str, Any]) -> str:
    """Return a content block as text; what is no text, by its kind and size."""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text"))
    if kind == "resource":
        resource = _object(block.get("resource"))
        size = len(str(resource.get("blob", "")))
        return (
            str(resource["text"])
            if "text" in resource
            else f"[resource {resource.get('uri')}, {size} base64 characters]"
        )
    if kind == "resource_link":
        return f"[link {block.get('uri')}]"
    return f"[{kind} {block.get('mimeType', '')}, {len(str(block.get('data', '')))} base64 characters]"
