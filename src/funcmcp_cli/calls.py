"""Files with calls, which ``funcmcp inspect --json`` and ``funcmcp diff`` make."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp import MCPError
from funcmcp._client.errors import one_line
from funcmcp._protocol.durations import seconds_text
from funcmcp._text.files import read_text
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp.client import Client

Call: TypeAlias = dict[str, Any]
"""An object with one of the members ``tool``, ``prompt`` and ``resource``, and perhaps with ``arguments``."""

_NO_ANSWER = -32001
"""The code that the official SDKs have for a request without an answer in time."""

_KINDS = ("tool", "prompt", "resource")


def read_calls(file: Path) -> list[Call]:
    """Return the calls in a JSON file. Raise Failure if it has anything else."""
    try:
        calls = json.loads(read_text(file))
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from error
    except RecursionError as error:
        raise Failure(f"{file} is nested too deeply.") from error
    except ValueError as error:
        raise Failure(f"{file} is not JSON: {one_line(error)}.") from error
    if not isinstance(calls, list):
        raise Failure(f'{file} must have an array of calls, such as [{{"tool": "add", "arguments": {{"a": 1}}}}].')
    for number, call in enumerate(calls, 1):
        if not _is_call(call):
            raise Failure(
                f"Call {number} in {file} must be an object with a tool, a prompt or a resource, and perhaps arguments."
            )
    return calls


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("arguments", {}), dict):
        return False
    kinds = [kind for kind in _KINDS if isinstance(call.get(kind), str)]
    return len(kinds) == 1 and set(call) <= {*kinds, "arguments"}


async def outcome_of(client: Client, call: Call, seconds: float | None = None) -> dict[str, Any]:
    """Make a call, and return an object with its ``result`` or its ``error``, which a call without an answer has."""
    try:
        async with asyncio.timeout(seconds):
            return await _outcome_of(client, call)
    except TimeoutError:
        return {
            "error": {"code": _NO_ANSWER, "message": f"The server did not answer within {seconds_text(seconds or 0)}."}
        }


async def _outcome_of(client: Client, call: Call) -> dict[str, Any]:
    arguments = call.get("arguments", {})
    try:
        if "tool" in call:
            return {"result": dict(await client.call_tool(call["tool"], arguments))}
        if "prompt" in call:
            return {"result": dict(await client.get_prompt(call["prompt"], arguments))}
        return {"result": dict(await client.read_resource(call["resource"]))}
    except MCPError as error:
        return {"error": {"code": error.code, "message": str(error)}}
