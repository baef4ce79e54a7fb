"""Results on stdout: as tables and texts for people, and as JSON for programs."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from funcmcp._cli.console import SafeConsole, styled
from funcmcp._cli.failure import Failure
from funcmcp._cli.json_values import as_list, as_object
from funcmcp._cli.output import write_bytes, write_json, write_text
from funcmcp._protocol.content_blocks import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._cli.doctor.project import Finding

_MAX_ROWS = 1_000
"""Rows of a table: rich takes minutes for 100,000."""

_COLOURS = {"error": "red", "warning": "yellow", "ok": "green"}


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a line for each finding of the doctor, and the numbers of errors and warnings."""
    console = SafeConsole()
    counts = {"error": 0, "warning": 0, "ok": 0}
    for finding in findings:
        counts[finding.level] += 1
        level = styled(f"{finding.level:7}", _COLOURS[finding.level])
        console.print(level, f" {finding.subject}: {finding.text}", soft_wrap=True)
    console.print(f"{_counted(counts['error'], 'error')}, {_counted(counts['warning'], 'warning')}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_findings_as_json(findings: Sequence[Finding]) -> None:
    """Print the findings of the doctor as a JSON array of objects with `level`, `subject` and `text`."""
    write_json([asdict(finding) for finding in findings])


def print_server(facts: Mapping[str, Any]) -> None:
    """Print the result of `inspect_server`, with a table for each kind of feature."""
    console = SafeConsole()
    server = as_object(facts["server"])
    heading = " ".join(str(server[member]) for member in ("name", "version") if member in server)
    console.print(styled(heading, "bold"), f"(MCP {facts['revision']})")
    for text in (server.get("description"), facts["instructions"]):
        if text:
            console.print(str(text))
    console.print(f"Capabilities: {', '.join(facts['capabilities']) or 'none'}")
    if not any(facts[columns.member] for columns in _TABLES):
        console.print("The server has no tools, resources or prompts.")
    for columns in _TABLES:
        features = facts[columns.member]
        if features:
            console.print(_table(columns, features[:_MAX_ROWS]))
        if len(features) > _MAX_ROWS:
            console.print(f"and {len(features) - _MAX_ROWS:,} more; --json prints all of them")


def _table(columns: _Columns, features: list[Any]) -> Table:
    table = Table(columns.title, columns.second_title, "Description", show_lines=True)
    for feature in map(as_object, features):
        key = styled(feature.get(columns.key), "bold")
        table.add_row(key, columns.second(feature), str(feature.get("description") or ""))
    return table


def print_contents(contents: Sequence[Any]) -> None:
    """Print the contents of a resource. On a terminal, bytes are replaced by their size."""
    for entry in map(as_object, contents):
        if "text" in entry or sys.stdout.isatty():
            write_text(text_of({"type": "resource", "resource": entry}))
        else:
            write_bytes(_bytes_of(entry))


def print_messages(messages: Sequence[Any]) -> None:
    """Print the messages of a prompt, each with its role."""
    for message in map(as_object, messages):
        write_text(f"{message.get('role')}: {text_of(as_object(message.get('content')))}")


def _bytes_of(contents: Mapping[str, Any]) -> bytes:
    try:
        return b64decode(str(contents.get("blob", "")), validate=True)
    except ValueError as error:
        raise Failure(f"The contents of {contents.get('uri')} are neither text nor base64.") from error


def print_result(result: Mapping[str, Any]) -> None:
    """Print a tool's result: its texts, or its structured content if it has no text. An error goes to stderr."""
    is_error = bool(result.get("isError"))
    blocks = [as_object(block) for block in as_list(result.get("content"))]
    has_text = any(block.get("type") == "text" for block in blocks)
    if "structuredContent" in result and not has_text:
        write_json(result["structuredContent"])
    for block in blocks:
        write_text(text_of(block), error=is_error)


def _tool_arguments(tool: Mapping[str, Any]) -> Text:
    schema = as_object(tool.get("inputSchema"))
    members = as_object(schema.get("properties")).values()
    lines = []
    for name, member in zip(_member_names(schema), members, strict=True):
        lines.append(Text.assemble(styled(name, "cyan"), styled(f": {_type_of(member)}")))
    return Text("\n").join(lines)


def _prompt_arguments(prompt: Mapping[str, Any]) -> Text:
    lines = []
    for argument in map(as_object, as_list(prompt.get("arguments"))):
        suffix = "" if argument.get("required") else "?"
        lines.append(Text.assemble(styled(argument.get("name"), "cyan"), suffix))
    return Text("\n").join(lines)


def _media_type(resource: Mapping[str, Any]) -> Text:
    return styled(resource.get("mimeType") or "")


@dataclass(frozen=True, slots=True)
class _Columns:
    """The table for one kind of feature.

    Attributes:
        title: The title of the first column, which has the feature's key.
        member: The member of the facts that has the features.
        key: The member of a feature that identifies it.
        second_title: The title of the second column.
        second: Returns the second column for a feature.
    """

    title: str
    member: str
    key: str
    second_title: str
    second: Callable[[Mapping[str, Any]], Text]


_TABLES = (
    _Columns("Tool", "tools", "name", "Arguments", _tool_arguments),
    _Columns("Resource", "resources", "uri", "Media type", _media_type),
    _Columns("Resource template", "resourceTemplates", "uriTemplate", "Media type", _media_type),
    _Columns("Prompt", "prompts", "name", "Arguments", _prompt_arguments),
)


def _member_names(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of an object's members, with a question mark after each optional one."""
    required = as_list(schema.get("required"))
    return [name if name in required else f"{name}?" for name in as_object(schema.get("properties"))]


def _type_of(schema: Any) -> str:
    """Return a schema's type in short, such as ``array of string``, ``"low" | "high"`` or ``object of x, y?``."""
    if not isinstance(schema, dict):
        return "any"
    if as_list(schema.get("enum")):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for keyword in ("anyOf", "oneOf"):
        if as_list(schema.get(keyword)):
            return " | ".join(dict.fromkeys(map(_type_of, schema[keyword])))
    type_name = schema.get("type", "any")
    if isinstance(type_name, list):
        return " | ".join(map(str, type_name))
    if type_name == "array":
        return f"array of {_type_of(schema.get('items'))}"
    if type_name == "object" and schema.get("properties"):
        return f"object of {', '.join(_member_names(schema))}"
    if "format" in schema:
        return f"{type_name} ({schema['format']})"
    return str(type_name)
