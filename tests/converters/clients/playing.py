"""What a client library does with servers, for the modules of this folder.

Each module runs in the environment of its library: `python -m tests.converters.clients.NAME` reads plans as JSON from
stdin and prints what happened as JSON. `tests.converters.plans` has both forms. It imports nothing outside of the
standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Coroutine

_CALL_SECONDS = 30
_MESSAGE_LENGTH = 300


class CallError(Exception):
    """The client reports that the call has failed; the text is what the model would read."""


class Connection(Protocol):
    """A connected client."""

    async def declarations(self) -> dict[str, dict[str, Any]]:
        """Return what the client sends to the APIs of models, by API and tool: declarations, or exceptions.

        A declaration has `name`, `description` and `parameters`, and `strict` where the API has it. A client that
        declares no tools has `""` as its API.
        """

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return what the model reads of a result; raise CallError for one that is an error."""

    async def read(self, uri: str, name: str) -> str:
        """Return what the client makes of a resource."""

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return what the client makes of a prompt."""


Connect: TypeAlias = Callable[[str], AbstractAsyncContextManager[Connection]]


def main(connect: Connect, *packages: str) -> None:
    """Play the plans of stdin.

    Args:
        connect: Connects the client to a URL.
        packages: The folders of the library in site-packages, which a fault is looked for in.
    """
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    plans = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # libraries print, too
        played = asyncio.run(_play_all(connect, plans, packages))
    print(json.dumps(played))


async def _play_all(connect: Connect, plans: list[dict[str, Any]], packages: tuple[str, ...]) -> list[dict[str, Any]]:
    return [await _play(connect, plan, packages) for plan in plans]


async def _play(connect: Connect, plan: dict[str, Any], packages: tuple[str, ...]) -> dict[str, Any]:
    played: dict[str, Any] = {"declared": {}, "calls": {}}
    try:
        async with connect(plan["url"]) as connection:
            for api, declarations in (await connection.declarations()).items():
                played["declared"][api] = {
                    name: fault(made, packages) if isinstance(made, Exception) else {"declaration": made}
                    for name, made in declarations.items()
                }
            for name, arguments in plan["calls"].items():
                played["calls"][name] = await _outcome(connection.call(name, arguments), packages)
            if plan.get("resource"):
                played["resource"] = await _outcome(connection.read(**plan["resource"]), packages)
            if plan.get("prompt"):
                played["prompt"] = await _outcome(connection.prompt(**plan["prompt"]), packages)
    except Exception as error:
        played |= fault(error, packages)
    return played


async def _outcome(action: Coroutine[Any, Any, str], packages: tuple[str, ...]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_CALL_SECONDS):
            return {"text": await action}
    except Exception as error:
        return fault(error, packages)


def fault(error: BaseException, packages: tuple[str, ...]) -> dict[str, Any]:
    """Return an exception as JSON: its text, and the line of the library that it comes from."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = [
        f"{path}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (path := frame.filename.rpartition("site-packages/")[2]).startswith(packages)
    ]
    text = " ".join(f"{type(error).__name__}: {error}".split())[:_MESSAGE_LENGTH]
    return {"fault": text, "line": lines[-1] if lines else ""}


def each(convert: Callable[[Any], Any], tools: list[Any]) -> dict[str, Any]:
    """Return what a conversion makes of each tool, or its exception."""
    converted: dict[str, Any] = {}
    for tool in tools:
        try:
            converted[tool.name] = convert(tool)
        except Exception as error:
            converted[tool.name] = error
    return converted
