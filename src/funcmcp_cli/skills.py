"""``funcmcp skills``: the skills of a server, and their files after their verification."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import asyncio
import base64
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from funcmcp_cli.client_commands import AsJSON, Save  # noqa: TC001 - read at run time
from funcmcp_cli.commands import Bearer, Headers, SignsIn, TargetOrURL, Verbose, app, examples
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from funcmcp.client import Skill, SkillFile
    from funcmcp_cli.connect import Source


@app.command(
    epilog=examples(
        "funcmcp skills https://example.com/mcp",
        "funcmcp skills server.py deploy",
        "funcmcp skills server.py deploy references/steps.md",
    )
)
def skills(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SKILL]", help="The name of a skill, or its URI.", show_default=False),
    ] = None,
    file: Annotated[
        str,
        typer.Argument(metavar="[FILE]", help="The path of one of its files.", show_default=False),
    ] = "SKILL.md",
    *,
    as_json: AsJSON = False,
    save: Save = None,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    verbose: Verbose = False,
) -> None:
    """List the skills of a server, or print a file of one. A file that differs from the server's list is an error.

    The command only shows a skill. Permissions that it asks for, such as allowed-tools, have no effect.
    """
    from funcmcp_cli import show
    from funcmcp_cli.connect import open_source
    from funcmcp_cli.output import write_json

    source = open_source(target, headers=header or [], bearer=bearer, sign_in=sign_in, verbose=verbose)
    if name is not None:
        content = _contents(asyncio.run(_read(source, name, file)))
        show.print_contents({"contents": [content]}, save, as_json=as_json)
        return
    listed = asyncio.run(_list(source))
    if as_json:
        write_json(listed)
        return
    rows = [(skill.uri, str(len(skill.files)) if skill.files else "?", skill.description) for skill in listed]
    show.print_rows(("Skill", "Files", "Description"), rows)


async def _list(source: Source) -> list[Skill]:
    """Return the skills that a server lists."""
    from funcmcp._text.visible import visible_line
    from funcmcp_cli.connect import connected

    async with connected(source) as client:
        listed = await client.list_skills()
        if not listed:
            raise Failure(f"{visible_line(str(client.server_info.get('name')))} lists no skills.")
        return listed


async def _read(source: Source, name: str, file: str) -> SkillFile:
    """Return a file of the skill with a name or a URI; raise Failure if there is none."""
    from funcmcp.client import SkillError
    from funcmcp_cli.connect import connected

    async with connected(source) as client:
        try:
            skill = await client.get_skill(name) if "://" in name else _named(await client.list_skills(), name)
            return await client.read_skill(skill, file)
        except (SkillError, ModuleNotFoundError) as error:
            raise Failure(str(error)) from error


def _named(listed: list[Skill], name: str) -> Skill:
    """Return the skill with a name; raise Failure if there is none, or more than one."""
    named = [skill for skill in listed if skill.name == name]
    if len(named) > 1:
        raise Failure(f"{len(named)} skills are called {name}: {', '.join(skill.uri for skill in named)}. Use a URI.")
    if named:
        return named[0]
    similar = get_close_matches(name, [skill.name for skill in listed], 3)
    hint = f" Did you mean {', '.join(similar)}?" if similar else ""
    raise Failure(f"The server lists no skill {name}.{hint}")


def _contents(file: SkillFile) -> dict[str, Any]:
    """Return a file in the form of contents of a resource."""
    members: dict[str, Any] = {"uri": file.uri}
    if file.mime_type is not None:
        members["mimeType"] = file.mime_type
    try:
        return {**members, "text": file.text}
    except UnicodeDecodeError:
        return {**members, "blob": base64.b64encode(file.data).decode()}
