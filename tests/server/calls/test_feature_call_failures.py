"""Failures of resources and prompts."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, InvalidParams, MCPError, ToolError
from funcmcp._server.calls.feature import Feature
from funcmcp._server.calls.feature_call import FeatureCalls
from tests.authoring.tool_calls import context
from tests.server.parts import KEYS, no_used_states

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")


class Menu(Feature):
    @property
    def key(self) -> str:
        return "menu://today"


class RustPanic(BaseException):
    """What a library may raise that is no Exception."""


class MuteError(ToolError):
    def __str__(self) -> str:
        raise ValueError("no words")


async def failure(error: BaseException, feature: Menu | None = None, *, show_errors: Any = False) -> MCPError:
    async def fail() -> dict[str, Any]:
        raise error

    with pytest.raises(MCPError) as caught:
        await FeatureCalls(KEYS, no_used_states(), show_errors).run(feature or Menu(), fail(), context())
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
    assert (await failure(ToolError("closed \ud800"))).message == "closed \ud800"


@pytest.mark.parametrize(
    ("error", "options", "feature", "text"),
    [
        (ValueError("no such table"), {"show_errors": True}, Menu(), "no such table"),
        (KeyError("id"), {"show_errors": [LookupError, OSError]}, Menu(), "KeyError: 'id'"),
        (ValueError(), {"show_errors": ValueError}, Menu(), "ValueError"),
        (RustPanic("a\ud800"), {"show_errors": (RustPanic,)}, Menu(), "a\ud800"),
        (ValueError("shown"), {}, Menu(shown_errors=(ValueError,)), "shown"),
        (ValueError("hidden"), {"show_errors": True}, Menu(shown_errors=()), None),
        (ValueError("hidden"), {"show_errors": [OSError]}, Menu(), None),
        (RustPanic("hidden"), {"show_errors": True}, Menu(), None),
        (ValueError("hidden"), {"show_errors": False}, Menu(), None),
    ],
)
async def test_the_text_of_an_exception_is_sent_only_where_its_type_is_shown(
    error: BaseException,
    options: dict[str, Any],
    feature: Menu,
    text: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failed = await failure(error, feature, **options)
    assert failed.code == INTERNAL_ERROR
    if text is None:
        assert "hidden" not in failed.message
        assert isinstance(failed.data, dict)
    else:
        assert (failed.message, failed.data) == (text, None)
    assert f": {type(error).__name__}: " in caplog.text  # the operator reads about it either way


async def test_an_exception_whose_text_fails_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    class SilentError(ValueError):
        def __str__(self) -> str:
            raise TypeError("no text")

    failed = await failure(SilentError(), show_errors=True)
    assert isinstance(failed.data, dict)
    assert f"error_id={failed.data['errorId']}" in caplog.text


@pytest.mark.parametrize(
    ("error", "options", "code", "text"),
    [
        (ExceptionGroup("g", [ToolError("a"), ToolError("b")]), {}, INTERNAL_ERROR, "a\nb"),
        (ExceptionGroup("g", [ExceptionGroup("h", [ToolError("a")]), ToolError("b")]), {}, INTERNAL_ERROR, "a\nb"),
        (ExceptionGroup("g", [InvalidParams("no such item")]), {}, INVALID_PARAMS, "no such item"),
        (ExceptionGroup("g", [InvalidParams("a"), ToolError("b")]), {}, INTERNAL_ERROR, None),
        (ExceptionGroup("g", [InvalidParams("a"), InvalidParams("b")]), {}, INTERNAL_ERROR, None),
        (ExceptionGroup("g", [ToolError("a"), ValueError("secret")]), {}, INTERNAL_ERROR, None),
        (ExceptionGroup("g", [OSError("a"), ToolError("b")]), {"show_errors": [OSError]}, INTERNAL_ERROR, "a\nb"),
        (ExceptionGroup("g", [OSError("a"), KeyError("b")]), {"show_errors": [OSError]}, INTERNAL_ERROR, None),
        (ExceptionGroup("g", [KeyError("b")]), {"show_errors": True}, INTERNAL_ERROR, "KeyError: 'b'"),
        (BaseExceptionGroup("g", [RustPanic("a")]), {"show_errors": True}, INTERNAL_ERROR, None),
    ],
)
async def test_a_group_means_what_its_members_mean(
    error: BaseException,
    options: dict[str, Any],
    code: int,
    text: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await failure(error, **options)
    assert answer.code == code
    if text is None:
        assert isinstance(answer.data, dict)
        assert f"error_id={answer.data['errorId']}" in caplog.text
        assert "secret" not in answer.message
    else:
        assert answer.message == text


async def test_middleware_gets_the_exception_itself() -> None:
    error, request = ExceptionGroup("g", [ValueError("no")]), context()

    async def fail() -> dict[str, Any]:
        raise error

    with pytest.raises(MCPError):
        await FeatureCalls(KEYS, no_used_states(), show_errors=False).run(Menu(), fail(), request)
    assert request.error is error
