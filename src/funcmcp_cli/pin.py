"""``funcmcp pin``: writes the hashes of a server's definitions, and compares a server with them."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import asyncio
import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from funcmcp._text.listing import counted
from funcmcp._text.replacing import replacement_of
from funcmcp._text.visible import hidden_in, visible_line
from funcmcp_cli.commands import Bearer, Headers, SignsIn, app, examples
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_line
from funcmcp_cli.program_options import ProgramOptions, program_of
from funcmcp_cli.server_options import with_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._upstreams.pins import Change
    from funcmcp_cli.connect import Source

_FILE = "funcmcp.lock.json"


@app.command(
    epilog=examples(
        "funcmcp pin 'uvx mcp-server-time' -o time.lock.json",
        "funcmcp pin --check -o time.lock.json",
        "funcmcp pin https://example.com/mcp --bearer TOKEN",
    )
)
@with_options
def pin(  # noqa: PLR0913 - one for each option of the command
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="A target, a URL, or a command such as 'uvx some-server'. By default the one in the file.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file with the hashes.")] = Path(
        _FILE
    ),
    check: Annotated[
        bool, typer.Option("--check", help="Compare the server with the file. The exit code is 1 if something differs.")
    ] = False,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    options: ProgramOptions,
) -> None:
    """Write the definitions of a server and their hashes into a file, for ``Upstream(pinned=FILE)``.

    If the file exists, the changes are printed. With --check nothing is written. Invisible characters are reported.
    """
    from funcmcp._upstreams.pins import changes_between, entries_in, text_of
    from funcmcp_cli.connect import open_source

    old = _read(output) if check or output.is_file() else None
    place = target or (old or {}).get("target")
    if not isinstance(place, str) or not place:
        raise typer.BadParameter("Name the server: a target, a URL or a command.", param_hint="TARGET")
    program = program_of(options)
    source = open_source(place, headers=header or [], bearer=bearer, sign_in=sign_in, program=program)
    content = asyncio.run(_content_of(source))
    changes = [] if old is None else changes_between(old, content)
    for change in changes:
        _print_change(change)
    _report_hidden_characters(content)
    if not check:
        _write(output, text_of(content))
        write_line(f"Wrote {len(entries_in(content))} hashes of {source.name} to {output}.")
    elif changes:
        write_line(f"{source.name} differs from {output}: {counted(len(changes), 'change')}.", error=True)
        raise typer.Exit(1)
    else:
        write_line(f"{source.name} is the same as in {output}.")


def _read(file: Path) -> dict[str, Any]:
    """Return the content of a file; raise Failure if it is not one of this command."""
    from funcmcp._upstreams.pins import read_pins

    try:
        return read_pins(file)
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from error


def _write(file: Path, text: str) -> None:
    try:
        with replacement_of(file) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{file} can't be written: {error.strerror}.") from error


async def _content_of(source: Source) -> dict[str, Any]:
    """Return the content of the file for a server; raise Failure if the server does not answer."""
    from funcmcp._upstreams.pins import pin_file
    from funcmcp_cli.connect import definitions_of

    facts, lists = await definitions_of(source)
    return pin_file(source.name, facts, lists)


def _print_change(change: Change) -> None:
    """Print what differs: the lines of the definitions as JSON, in which hidden characters are escapes."""
    write_line(f"{change.word}: {visible_line(change.subject)}")
    before, after = _lines_of(change.pinned), _lines_of(change.current)
    if change.word == "changed":
        for line in list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]:
            if not line.startswith("@@"):
                write_line(f"    {line}")
    elif change.word == "new":
        for line in after:
            write_line(f"    +{line}")


def _lines_of(definition: Any) -> Sequence[str]:
    return [] if definition is None else json.dumps(definition, indent=2, sort_keys=True).splitlines()


def _report_hidden_characters(content: Mapping[str, Any]) -> None:
    from funcmcp._upstreams.pins import entries_in

    for subject, entry in entries_in(content).items():
        for sentence in hidden_in(subject, entry["definition"]):
            write_line(f"Warning: {sentence}", error=True)
