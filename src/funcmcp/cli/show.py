"""Results for people, and for programs that read them."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from funcmcp.cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp.cli.project import Finding

_WIDTH_OF_PIPES = 160
_COLOURS = {"error": "red", "warning": "yellow", "ok": "green"}
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def visible(text: object) -> str:
    """Return a server's text with its control characters spelled out: they could steer the terminal."""
    return str(text).replace("\r\n", "\n").translate(_CONTROLS)


def plain(text: object) -> str:
    """Return a server's text as rich prints it: without control characters, and with no word of it taken for markup."""
    return escape(visible(text))


def print_json(value: object) -> None:
    """Print a JSON document."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_findings(findings: Sequence[Finding]) -> None:
    """Print what the doctor found, a line for each finding, and how many errors and warnings there are."""
    console = Console()
    for finding in findings:
        level = f"[{_COLOURS[finding.level]}]{finding.level:7}[/]"
        console.print(f"{level}  {plain(finding.about)}: {plain(finding.text)}", highlight=False, soft_wrap=True)
    errors, warnings = (sum(finding.level == level for finding in findings) for level in ("error", "warning"))
    console.print(f"{errors} errors, {warnings} warnings", highlight=False)


def print_findings_as_json(findings: Sequence[Finding]) -> None:
    """Print what the doctor found as a JSON array of objects with `level`, `about` and `text`."""
    print_json([asdict(finding) for finding in findings])


def print_server(facts: Mapping[str, Any]) -> None:
    """Print what `inspect_server` found, a table for each kind of feature."""
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_OF_PIPES
    server = _object(facts["server"])
    named = " ".join(str(server[member]) for member in ("name", "version") if member in server)
    console.print(f"[bold]{plain(named)}[/bold]", f"(MCP {plain(facts['revision'])})", highlight=False)
    for text in (server.get("description"), facts["instructions"]):
        if text:
            console.print(plain(text), highlight=False)
    console.print(f"Capabilities: {plain(', '.join(facts['capabilities'])) or 'none'}", highlight=False)
    if not any(facts[member] for _, member, _, _, _ in _TABLES):
        console.print("It has no tools, resources or prompts.")
    for title, member, key, second, more in _TABLES:
        table = Table(title, second, "Description", show_lines=True)
        for feature in map(_object, facts[member]):
            description = plain(feature.get("description") or "")
            table.add_row(f"[bold]{plain(feature.get(key))}[/bold]", more(feature), description)
        if facts[member]:
            console.print(table)


def print_contents(contents: object) -> None:
    """Print what a resource holds, each part as it is; of bytes, a terminal gets the size."""
    for part in map(_object, _list(contents)):
        if "text" in part or sys.stdout.isatty():
            _print(_shown({"type": "resource", "resource": part}))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(_bytes(part))


def print_messages(messages: object) -> None:
    """Print the messages of a prompt, each with its role."""
    for message in map(_object, _list(messages)):
        _print(f"{message.get('role')}: {_shown(_object(message.get('content')))}")


def _print(text: str, *, to_stderr: bool = False) -> None:
    """Print a server's text, with one line feed at its end at least; for programs as it is."""
    for_people = to_stderr or sys.stdout.isatty()
    typer.echo(visible(text) if for_people else text, nl=not text.endswith("\n"), err=to_stderr, color=True)


def _bytes(part: Mapping[str, Any]) -> bytes:
    try:
        return b64decode(str(part.get("blob", "")), validate=True)
    except ValueError as error:
        raise Failure(f"What {visible(part.get('uri'))} holds is neither text nor base64.") from error


def print_result(result: Mapping[str, Any]) -> None:
    """Print a CallToolResult: its texts, or else its structured content; to stderr if it is an error."""
    to_stderr = bool(result.get("isError"))
    content = [_object(block) for block in _list(result.get("content"))]
    if "structuredContent" in result and not any(block.get("type") == "text" for block in content):
        print_json(result["structuredContent"])
    for block in content:
        _print(_shown(block), to_stderr=to_stderr)


def _arguments(tool: Mapping[str, Any]) -> str:
    schema = _object(tool.get("inputSchema"))
    names = zip(_names(schema), _object(schema.get("properties")).values(), strict=True)
    return "\n".join(f"[cyan]{plain(name)}[/cyan]: {plain(_kind(member))}" for name, member in names)


def _prompt_arguments(prompt: Mapping[str, Any]) -> str:
    arguments = [_object(argument) for argument in _list(prompt.get("arguments"))]
    return "\n".join(f"[cyan]{plain(a.get('name'))}[/cyan]{'' if a.get('required') else '?'}" for a in arguments)


def _media_type(resource: Mapping[str, Any]) -> str:
    return plain(resource.get("mimeType") or "")


_TABLES: tuple[tuple[str, str, str, str, Callable[[Mapping[str, Any]], str]], ...] = (
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
