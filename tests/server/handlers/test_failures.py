"""Failures of resources and prompts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from funcmcp.protocol.errors import INTERNAL_ERROR, MCPError, ToolError
from funcmcp.server.handlers.runs import run


class Menu(NamedTuple):
    key: str = "menu://today"
    interactive: bool = False
    timeout: float | None = 60.0


class RustPanic(BaseException):
    """What a library may raise that is no Exception."""


class MuteError(ToolError):
    def __str__(self) -> str:
        raise ValueError("no words")


async def failure(error: BaseException) -> MCPError:
    async def fail() -> dict[str, Any]:
        raise error

    with pytest.raises(MCPError) as caught:
        await run(Menu(), fail())
    return caught.value


@pytest.mark.parametrize(
    "error", [ValueError("no"), RustPanic("panicked"), MuteError(), SystemExit(3), KeyboardInterrupt()]
)
async def test_a_failure_is_told_by_an_id_that_is_in_the_log(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    told = await failure(error)
    assert told.code == INTERNAL_ERROR
    assert isinstance(told.data, dict)
    assert f"error_id={told.data['errorId']} feature=menu://today" in caplog.text


async def test_the_text_of_a_tool_error_is_told_without_what_can_not_be_sent() -> None:
    assert (await failure(ToolError("closed \ud800"))).message == "closed ?"
