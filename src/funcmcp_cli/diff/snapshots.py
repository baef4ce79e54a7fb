"""The two servers of ``funcmcp diff``: targets, URLs, commands and saved descriptions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import one_line
from funcmcp._objects.mappings import without
from funcmcp._text.files import read_text
from funcmcp_cli.connect import Source, inspect_server, is_command, open_source
from funcmcp_cli.failure import Failure
from funcmcp_cli.targets import function_app_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp_cli.calls import Call


async def snapshot(
    place: str, calls: Sequence[Call], *, headers: Sequence[str] = (), bearer: str | None = None
) -> dict[str, Any]:
    """Return the description of a server.

    Args:
        place: A target, a URL, a command, or a file with the output of ``funcmcp inspect --json``.
        calls: Calls to make. A file must have been saved with the same calls.
        headers: Header fields for a URL.
        bearer: A token for a URL.

    Raises:
        Failure: The server cannot be reached, or the file is not such a file.
    """
    if place.endswith(".json"):
        return _saved(Path(place), calls)
    facts, _ = await inspect_server(_source(place, headers, bearer), calls)
    return facts


def _source(place: str, headers: Sequence[str], bearer: str | None) -> Source:
    if place.startswith(("http://", "https://")):
        return open_source(place, headers=headers, bearer=bearer)
    if is_command(place):
        return open_source(place)
    # Both servers can have modules of the same names, so each runs in a process of its own.
    if function_app_in(place) is not None:
        return function_app_source(place)
    return Source(place, None, command=(sys.executable, "-m", "funcmcp", "run", place, "--stdio"))


def function_app_source(folder: str) -> Source:
    """Return the function app of a folder, which ``funcmcp host`` serves in a process of its own."""
    command = (sys.executable, "-m", "funcmcp", "host", folder, "--stdio", "--no-reload")
    return Source(folder, None, command=command)


def _saved(file: Path, calls: Sequence[Call]) -> dict[str, Any]:
    try:
        facts = json.loads(read_text(file))
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from error
    except RecursionError as error:
        raise Failure(f"{file} is nested too deeply.") from error
    except ValueError as error:
        raise Failure(f"{file} is not JSON: {one_line(error)}.") from error
    if not isinstance(facts, dict) or not isinstance(facts.get("tools"), list):
        raise Failure(f"{file} is not a saved server. Save one with: funcmcp inspect TARGET --json > {file.name}")
    recorded_calls = [without(call, "result", "error") for call in facts.get("calls", [])]
    if calls and recorded_calls != list(calls):
        raise Failure(f"{file} was saved with other calls. Save it again with the same file for --calls.")
    return facts
