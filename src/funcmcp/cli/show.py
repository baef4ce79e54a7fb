"""Results for people, and for programs that read them."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from funcmcp.cli.console import SafeConsole, styled
from funcmcp.cli.failure import Failure
from funcmcp.cli.output import write_bytes, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp.cli.doctor.project import Finding

_MOST_ROWS = 1_000
"""Features of one kind that a table shows: 100,000 rows take minutes."""

_COLOURS = {"error": "red", "warning": "yellow", "ok": "green"}


def print_findings(findings: Sequence[Finding]) -> None:
    """Print what the doctor found, a line for each finding, and how many errors and warnings there are."""
    console = SafeConsole()
    for finding in findings:
        level = styled(f"{finding.level:7}", _COLOURS[finding.level])
        console.print(level, f" {finding.about}: {finding.text}", soft_wrap=True)
    errors, warnings = (sum(finding.level == level for finding in findings) for level in ("error", "warning"))
    console.print(f"{errors} errors, {warnings} warnings")


def print_findings_as_json(findings: Sequence[Finding]) -> None:
    """Print what the doctor found as a JSON array of objects with `level`, `about` and `text`."""
    write_json([asdict(finding) for finding in findings])


def print_server(facts: Mapping[str, Any]) -> None:
    """Print what `inspect_server` found, a table for each kind of feature."""
    console = SafeConsole()
    server = _object(facts["server"])
    named = " ".join(str(server[member]) for member in ("name", "version") if member in server)
    console.print(styled(named, "bold"), f"(MCP {facts['revision']})")
    for text in (server.get("description"), facts["instructions"]):
        if text:
            console.print(str(text))
    console.print(f"Capabilities: {', '.join(facts['capabilities']) or 'none'}")
    if not any(facts[member] for _, member, _, _, _ in _TABLES):
        console.print("It has no tools, resources or prompts.")
    for title, member, key, second, more in _TABLES:
        table = Table(title, second, "Description", show_lines=True)
        for feature in map(_object, facts[member][:_MOST_ROWS]):
            table.add_row(styled(feature.get(key), "bold"), more(feature), str(feature.get("description") or ""))
        if facts[member]:
            console.print(table)
        if len(facts[member]) > _MOST_ROWS:
            console.print(f"and {len(facts[member]) - _MOST_ROWS:,} more; --json shows them all")


def print_contents(contents: object) -> None:
    """Print what a resource holds, each part as it is; of bytes, a terminal gets the size."""
    for part in map(_object, _list(contents)):
        if "text" in part or sys.stdout.isatty():
            write_text(_shown({"type": "resource", "resource": part}))
        else:
            write_bytes(_bytes(part))


def print_messages(messages: object) -> None:
    """Print the messages of a prompt, each with its role."""
    for message in map(_object, _list(messages)):
        write_text(f"{message.get('role')}: {_shown(_object(message.get('content')))}")


def _bytes(part: Mapping[str, Any]) -> bytes:
    try:
        return b64decode(str(part.get("blob", "")), validate=True)
    except ValueError as error:
        raise Failure(f"What {part.get('uri')} holds is neither text nor base64.") from error


def print_result(result: Mapping[str, Any]) -> None:
    """Print a CallToolResult: its texts, or else its structured content; to stderr if it is an error."""
    failed = bool(result.get("isError"))
    content = [_object(block) for block in _list(result.get("content"))]
    if "structuredContent" in result and not any(block.get("type") == "text" for block in content):
        write_json(result["structuredContent"])
    for block in content:
        write_text(_shown(block), error=failed)


def _arguments(tool: Mapping[str, Any]) -> Text:
    schema = _object(tool.get("inputSchema"))
    members = _object(schema.get("properties")).values()
    lines = [
        Text.assemble(styled(name, "cyan"), styled(f": {_kind(member)}"))
        for name, member in zip(_names(schema), members, strict=True)
    ]
    return Text("\n").join(lines)


def _prompt_arguments(prompt: Mapping[str, Any]) -> Text:
    lines = []
    for argument in map(_object, _list(prompt.get("arguments"))):
        optional = "" if argument.get("required") else "?"
        lines.append(Text.assemble(styled(argument.get("name"), "cyan"), optional))
    return Text("\n").join(lines)


def _media_type(resource: Mapping[str, Any]) -> Text:
    return styled(resource.get("mimeType") or "")


_TABLES: tuple[tuple[str, str, str, str, Callable[[Mapping[str, Any]], Text]], ...] = (
    ("Tool", "tools", "name", "Arguments", _arguments),
    ("Resource", "resources", "uri", "Media type", _media_type),
    ("Resource template", "resourceTemplates", "uriTemplate", "Media type", _media_type),
    ("Prompt", "prompts", "name", "Arguments", _prompt_arguments),
)
"""Of each kind: its title, its member of the facts, its key, and what the second column shows."""


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
