"""A function app that the command line serves, for ``funcmcp host`` or for one command of a client."""

# ruff: noqa: PLC0415 - what serves function apps is imported when it is needed

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_note

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse
    from funcmcp_host.app_rules.rule import Breach
    from funcmcp_host.served import FunctionsHost, HostSettings


def open_function_app(folder: Path, settings: HostSettings, *, has_address: bool) -> FunctionsHost:
    """Return the function app of a folder, not started yet; raise Failure if there is none.

    Args:
        folder: The folder.
        settings: How the app is served.
        has_address: Whether clients reach it by HTTP. A client that starts the app itself needs no key.
    """
    from funcmcp_host.folder import CrossOrigin, FolderError
    from funcmcp_host.keys import VARIABLE
    from funcmcp_host.served import FunctionsHost

    environment = dict(os.environ)
    if not has_address:
        environment.pop(VARIABLE, None)
        settings = replace(settings, cross_origin=CrossOrigin())  # no page can reach it
    try:
        return FunctionsHost(folder, environment, settings)
    except (FolderError, ValueError) as error:  # the latter is about keys in the environment
        raise Failure(str(error)) from error


async def start_function_app(served: FunctionsHost) -> None:
    """Start a function app. Raise Failure if it can't be loaded."""
    from funcmcp_host.workers.worker import LoadFailed

    try:
        await served.start()
    except LoadFailed as error:
        raise Failure(f"The function app can't be loaded. {error}") from error


def announce_function_app(served: FunctionsHost) -> None:
    """Write on stderr what is served and what is left out, and what the rules for apps on Azure find."""
    write_note(f"{served.folder.path.name}: {served.summary}", error=True)
    write_left_out(served)
    write_breaches(served.breaches)


def write_breaches(breaches: Sequence[Breach]) -> None:
    """Write a line on stderr for each finding about an app on Azure, as `funcmcp doctor` has it."""
    for breach in breaches:
        write_note(f"{breach.rule.level} {breach.subject}: {breach.text}", error=True)


def write_left_out(served: FunctionsHost) -> None:
    """Write a line on stderr for each function that is left out."""
    for function, reason, is_listed in served.left_out:
        state = "is listed, but can't run" if is_listed else "is left out"
        write_note(f"{function} {state}: {reason}", error=True)


class ServedApp(NamedTuple):
    """A function app that is served for one command.

    Attributes:
        exchange: Answers requests at any path.
        without_structure: The tools with an output schema whose results never have structured content.
    """

    exchange: Exchange
    without_structure: Sequence[str]


@contextlib.asynccontextmanager
async def serving_function_app(folder: Path, *, shows_left_out: bool) -> AsyncIterator[ServedApp]:
    """Serve a function app in this process for one command.

    Functions that are left out, and what Azure or clients make of the others, are named if *shows_left_out* is set.
    The former are also named if the command fails.
    """
    from funcmcp_host.app_rules.trigger_rules import tools_without_structure
    from funcmcp_host.served import HostSettings

    served = open_function_app(folder, HostSettings(), has_address=False)

    async def exchange(request: HttpRequest) -> HttpResponse:
        request.path = served.path
        return await served.exchange(request)

    try:
        await start_function_app(served)
        if shows_left_out:
            write_left_out(served)
            write_breaches([breach for breach in served.breaches if breach.rule.group == "triggers"])
        try:
            yield ServedApp(exchange, [tool for _, tool in tools_without_structure(served.app)])
        except Failure:
            if not shows_left_out:
                write_left_out(served)
            raise
    finally:
        await served.aclose()
