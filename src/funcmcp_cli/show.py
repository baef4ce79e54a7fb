"""Results on stdout: as tables and texts for people, and as JSON for programs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from funcmcp._protocol.content_blocks import text_of
from funcmcp._text.listing import counted
from funcmcp._text.visible import visible_line
from funcmcp_cli.console import SafeConsole, print_if_json, styled
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object, first_line
from funcmcp_cli.output import write_bytes, write_json, write_line, write_text
from funcmcp_cli.saving import bytes_of, save_block

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from funcmcp_cli.doctor.project import Finding

_MAX_DETAILED = 20
"""Features of one kind whose table has all of each."""

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
    console.print(f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}")


def print_findings_as_json(findings: Sequence[Finding]) -> None:
    """Print the findings of the doctor as a JSON array of objects with `level`, `subject` and `text`."""
    write_json([asdict(finding) for finding in findings])


def only_named(facts: Mapping[str, Any], patterns: Sequence[str]) -> dict[str, Any]:
    """Return the result of `inspect_server` with the features whose names or URIs match one of the patterns.

    Raises:
        Failure: No feature matches a pattern.
    """
    chosen = dict(facts)
    keys = []
    for columns in _TABLES:
        features = [(str(as_object(feature).get(columns.key)), feature) for feature in facts[columns.member]]
        keys += [key for key, _ in features]
        chosen[columns.member] = [feature for key, feature in features if _matches(key, patterns)]
    for pattern in patterns:
        if not any(_matches(key, [pattern]) for key in keys):
            similar = get_close_matches(pattern, keys, 3)
            advice = f" Did you mean {' or '.join(similar)}?" if similar else ""
            raise Failure(f"The server has no tool, resource or prompt {pattern!r}.{advice}")
    return chosen


def _matches(key: str, patterns: Sequence[str]) -> bool:
    return any(key == pattern or fnmatchcase(key, pattern) for pattern in patterns)


def print_server(facts: Mapping[str, Any]) -> None:
    """Print the result of `inspect_server`.

    On a terminal there is a table for each kind of feature; in a long one, each feature has one line. In a pipe there
    is a line for each feature: its kind, its key, its arguments or media type, the first line of its description, and
    where it comes from unless it is the server's own, with tabs between them.
    """
    console = SafeConsole()
    server = as_object(facts["server"])
    heading = " ".join(visible_line(str(server[member])) for member in ("name", "version") if member in server)
    console.print(styled(heading, "bold"), f"(MCP {facts['revision']})")
    for text in (server.get("description"), facts["instructions"]):
        if text:
            console.print(str(text))
    console.print(f"Capabilities: {', '.join(facts['capabilities']) or 'none'}")
    if not any(facts[columns.member] for columns in _TABLES):
        console.print("The server has no tools, resources or prompts.")
    for columns in _TABLES:
        features = [as_object(feature) for feature in facts[columns.member]]
        sources = as_object(as_object(facts.get("sources")).get(columns.member))
        if not console.is_terminal:
            for feature in features:
                _print_line(columns, feature, sources)
        elif features:
            table = _list if len(features) > _MAX_DETAILED else _table
            console.print(table(columns, features[:_MAX_ROWS], sources))
            if len(features) > _MAX_ROWS:
                console.print(f"and {len(features) - _MAX_ROWS:,} more; --json prints all of them")


def print_rows(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows: as a table on a terminal, and in a pipe as lines with tabs between the cells."""
    console = SafeConsole()
    if not console.is_terminal:
        for row in rows:
            write_line("\t".join(cell.replace("\t", " ") for cell in row).rstrip())
        return
    table = Table(*titles, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _print_line(columns: _Columns, feature: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    second = columns.second(feature).plain.replace("\n", ", ")
    source = sources.get(str(feature.get(columns.key)), "")
    cells = (columns.title.lower(), feature.get(columns.key), second, first_line(feature), source)
    write_line("\t".join(str(cell).replace("\t", " ") for cell in cells).rstrip())


def _table(columns: _Columns, features: list[Mapping[str, Any]], sources: Mapping[str, str]) -> Table:
    """Return a table with all of each feature."""
    titles = [columns.title, columns.second_title, "Description", *(["Source"] if sources else [])]
    table = Table(*titles, show_lines=True)
    for feature in features:
        key = styled(feature.get(columns.key), "bold")
        description = str(feature.get("description") or "")
        table.add_row(key, columns.second(feature), description, *_cells_of(sources, feature.get(columns.key)))
    return table


def _list(columns: _Columns, features: list[Mapping[str, Any]], sources: Mapping[str, str]) -> Table:
    """Return a table with a line for each feature: its key, and as much of its description as the line has room for."""
    table = Table(box=None, pad_edge=False)
    table.add_column(f"{columns.title} ({len(features):,})", no_wrap=True)
    table.add_column("Description", no_wrap=True, overflow="ellipsis")
    if sources:
        table.add_column("Source", no_wrap=True)
    for feature in features:
        key = feature.get(columns.key)
        table.add_row(styled(key, "bold"), first_line(feature), *_cells_of(sources, key))
    return table


def _cells_of(sources: Mapping[str, str], key: object) -> list[str]:
    """Return the cell with the source of a feature; none if all features are the server's own."""
    return [sources.get(str(key), "")] if sources else []


def print_contents(result: Mapping[str, Any], folder: Path | None, *, as_json: bool) -> None:
    """Print the contents of a resource. On a terminal, bytes are replaced by their size.

    Args:
        result: The result of ``resources/read``.
        folder: Where to write the contents as files. None to print them.
        as_json: Print the result as one JSON document instead.
    """
    entries = [as_object(entry) for entry in as_list(result.get("contents"))]
    is_saved = _save([{"type": "resource", "resource": entry} for entry in entries], folder)
    if as_json:
        write_json(result)
    elif not is_saved:
        for entry in entries:
            _print_entry(entry)


def _print_entry(entry: Mapping[str, Any]) -> None:
    if "text" in entry or sys.stdout.isatty():
        _print_text(_shown({"type": "resource", "resource": entry}))
    else:
        write_bytes(bytes_of(entry))


def print_messages(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the messages of a prompt, each with its role, or the result as one JSON document."""
    if as_json:
        write_json(result)
        return
    for message in map(as_object, as_list(result.get("messages"))):
        write_text(f"{visible_line(str(message.get('role')))}: {_shown(as_object(message.get('content')))}")


def print_result(result: Mapping[str, Any], folder: Path | None, *, as_json: bool) -> None:
    """Print a tool's result: its texts, or its structured content if it has no text. An error goes to stderr.

    Args:
        result: The result of ``tools/call``.
        folder: Where to write images, sounds and files. None to print their kinds and sizes only.
        as_json: Print the result as one JSON document instead.
    """
    is_error = bool(result.get("isError"))
    blocks = [as_object(block) for block in as_list(result.get("content"))]
    _save(blocks, folder)
    if as_json:
        write_json(result)
        return
    has_text = any(block.get("type") == "text" for block in blocks)
    if "structuredContent" in result and not has_text:
        _print_value(result["structuredContent"])
    for block in blocks:
        if is_error:
            write_text(_shown(block), error=True)
        else:
            _print_text(_shown(block))


def _shown(block: Mapping[str, Any]) -> str:
    """Return the text of a content block. What is said about an image, a link or a file stays in its line."""
    is_text = block.get("type") == "text" or "text" in as_object(block.get("resource"))
    return text_of(block) if is_text else visible_line(text_of(block))


def _save(blocks: Sequence[Mapping[str, Any]], folder: Path | None) -> bool:
    """Write the images, sounds and files among content blocks into a folder. Return whether there was a folder."""
    if folder is None:
        return False
    for block in blocks:
        file = save_block(block, folder)
        if file is not None:
            write_line(f"Saved {file} ({file.stat().st_size:,} bytes)", error=True)
    return True


def _print_value(value: Any) -> None:
    if not print_if_json(json.dumps(value, ensure_ascii=False)):
        write_json(value)


def _print_text(text: str) -> None:
    """Print a server's text. On a terminal, JSON has one line for each member, and colours."""
    if not print_if_json(text):
        write_text(text)


def _tool_arguments(tool: Mapping[str, Any]) -> Text:
    schema = as_object(tool.get("inputSchema"))
    definitions = as_object(schema.get("$defs"))
    members = as_object(schema.get("properties")).values()
    lines = []
    for name, member in zip(_member_names(schema), members, strict=True):
        lines.append(Text.assemble(styled(name, "cyan"), styled(f": {_type_of(member, definitions)}")))
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


def _type_of(schema: Any, definitions: Mapping[str, Any]) -> str:
    """Return a schema's type in short, such as ``array of string``, ``"low" | "high"`` or ``object of x, y?``.

    Args:
        schema: The schema.
        definitions: The schemas that references lead to, by name, without those in which this schema is.
    """
    if not isinstance(schema, dict):
        return "any"
    name = str(schema.get("$ref")).removeprefix("#/$defs/")
    if name in definitions:
        return _type_of(definitions[name], {key: value for key, value in definitions.items() if key != name})
    if as_list(schema.get("enum")):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for keyword in ("anyOf", "oneOf"):
        if as_list(schema.get(keyword)):
            return " | ".join(dict.fromkeys(_type_of(member, definitions) for member in schema[keyword]))
    return _type_by_name(schema, definitions)


def _type_by_name(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the type of a schema that names it in ``type``."""
    type_name = schema.get("type", "any")
    if isinstance(type_name, list):
        return " | ".join(map(str, type_name))
    if type_name == "array":
        return f"array of {_type_of(schema.get('items'), definitions)}"
    if type_name == "object" and schema.get("properties"):
        return f"object of {', '.join(_member_names(schema))}"
    if type_name == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type_of(schema['additionalProperties'], definitions)}"
    detail = schema.get("format") or schema.get("contentEncoding")
    return f"{type_name} ({detail})" if detail else str(type_name)
