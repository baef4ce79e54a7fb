"""``funcmcp diff``: what differs between two servers, and what of it breaks clients."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from funcmcp_cli.commands import Bearer, Calls, Headers, app
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_json, write_line

if TYPE_CHECKING:
    from funcmcp_cli.diff.differences import Difference

_PLACE = "a target, a URL, a command such as 'uvx some-server', or a file saved by funcmcp inspect --json"
_TROUBLE = 2


@app.command()
def diff(  # noqa: PLR0913 - one for each option of the command
    old: Annotated[str, typer.Argument(metavar="OLD", help=f"The old server: {_PLACE}.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new server, in the same forms.", show_default=False)],
    *,
    calls: Calls = None,
    breaking: Annotated[
        bool, typer.Option("--breaking", help="Set the exit code to 1 only for differences that break clients.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    header: Headers = None,
    bearer: Bearer = None,
) -> None:
    """Compare what two servers offer. The exit code is 0 if it is the same, 1 if not, 2 if a server does not answer.

    A difference is "breaking" if a client of OLD can fail with NEW, "wording" if only texts differ, and "compatible"
    otherwise.
    """
    import asyncio

    from funcmcp_cli.calls import read_calls
    from funcmcp_cli.diff.compare import differences
    from funcmcp_cli.diff.differences import print_differences
    from funcmcp_cli.diff.snapshots import snapshot

    async def both() -> list[Difference]:
        requested = [] if calls is None else read_calls(calls)
        facts = [await snapshot(place, requested, headers=header or [], bearer=bearer) for place in (old, new)]
        try:
            return differences(*facts)
        except RecursionError as error:
            raise Failure("A schema or a value is nested too deeply to compare.") from error

    try:
        result = asyncio.run(both())
    except Failure as failure:  # 1 means that there are differences
        write_line(failure, error=True)
        raise typer.Exit(_TROUBLE) from failure
    if breaking:
        result = [difference for difference in result if difference.level == "breaking"]
    if as_json:
        _print_json(result)
    else:
        print_differences(result)
    if result:
        raise typer.Exit(1)


def _print_json(result: list[Difference]) -> None:
    from dataclasses import asdict

    from funcmcp_cli.diff.differences import LEVELS

    counts = {level: sum(difference.level == level for difference in result) for level in LEVELS}
    write_json({"counts": counts, "differences": [asdict(difference) for difference in result]})
