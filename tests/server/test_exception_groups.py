"""What exception groups mean."""

from __future__ import annotations

import asyncio

import pytest

from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._server.exception_groups import meaning_of, members_of, shown_text

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")


def nested(error: BaseException, depth: int) -> BaseException:
    """Return an exception in so many groups."""
    for _ in range(depth):
        error = BaseExceptionGroup("g", [error])
    return error


def test_the_members_of_groups_have_their_order() -> None:
    first, second, third = ValueError("1"), KeyError("2"), OSError("3")
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [first, second]), third])
    assert members_of(group) == [first, second, third]
    assert members_of(first) == [first]


def test_a_group_that_is_in_many_others_is_looked_at_once() -> None:
    error: Exception = ValueError("a")
    for _ in range(200):
        error = ExceptionGroup("g", [error, error])
    assert len(members_of(error)) == 2


def test_a_group_of_one_means_this_one_at_any_depth() -> None:
    error = InvalidParams("no")
    assert meaning_of(nested(error, 10_000)) is error
    assert meaning_of(error) is error


def test_a_group_of_cancellations_is_a_cancellation() -> None:
    group = BaseExceptionGroup("g", [asyncio.CancelledError(), asyncio.CancelledError()])
    assert isinstance(meaning_of(group), asyncio.CancelledError)


def test_a_group_of_several_means_itself() -> None:
    group = BaseExceptionGroup("g", [asyncio.CancelledError(), ValueError()])
    assert meaning_of(group) is group


class ManyErrors(ExceptionGroup[Exception], ToolError):
    """A group with a text for the model."""


@pytest.mark.parametrize(
    ("error", "types", "text"),
    [
        (ToolError("one"), (ToolError,), "one"),
        (ExceptionGroup("g", [ToolError("one"), ToolError("two")]), (ToolError,), "one\ntwo"),
        (
            ExceptionGroup("g", [ToolError("one"), ExceptionGroup("h", [KeyError("k")])]),
            (Exception,),
            "one\nKeyError: 'k'",
        ),
        (ExceptionGroup("g", [ToolError("one"), ValueError("secret")]), (ToolError,), None),
        (ExceptionGroup("g", [ToolError("one"), ValueError("two")]), (ToolError, ValueError), "one\ntwo"),
        (BaseExceptionGroup("g", [ToolError("one"), KeyboardInterrupt("secret")]), (Exception,), None),
        (ManyErrors("many", [ValueError("secret")]), (ToolError,), "many (1 sub-exception)"),
        (ManyErrors("many", [ToolError("one")]), (ToolError,), "one"),
        (nested(ToolError("deep"), 50), (ToolError,), "deep"),
        (nested(ToolError("deep"), 10_000), (ToolError,), None),
    ],
)
def test_a_group_is_shown_if_all_its_members_are(
    error: BaseException, types: tuple[type[BaseException], ...], text: str | None
) -> None:
    assert shown_text(error, types) == text


@pytest.mark.parametrize(
    "group",
    [
        ExceptionGroup("g", [ToolError("a"), ValueError("b")]),
        ExceptionGroup("g", [ToolError("a"), ExceptionGroup("h", [ValueError("b"), KeyError("c")])]),
        ExceptionGroup("g", [KeyError("c")]),
        BaseExceptionGroup("g", [KeyError("c"), KeyboardInterrupt()]),
        ManyErrors("g", [OSError()]),
    ],
)
@pytest.mark.parametrize("types", [(ToolError,), (ValueError, ToolError), (LookupError,), (Exception,), (OSError,)])
def test_what_is_shown_is_what_split_finds(
    group: BaseExceptionGroup[BaseException], types: tuple[type[BaseException], ...]
) -> None:
    assert (shown_text(group, types) is not None) == (group.split(types)[1] is None)


def test_groups_that_share_groups_take_no_exponential_time() -> None:
    group: ExceptionGroup[Exception] = ExceptionGroup("g", [ToolError("a")])
    for _ in range(60):
        group = ExceptionGroup("g", [group, group])
    assert shown_text(group, (ToolError,)) == "a"


def test_a_group_that_contains_itself_is_a_failure_without_members() -> None:
    class Circle(ExceptionGroup[Exception]):
        exceptions = ()

    group = Circle("g", [ValueError("a")])
    Circle.exceptions = (group,)  # type: ignore[assignment]
    assert members_of(group) == []
    assert meaning_of(group) is group
    assert shown_text(group, (ValueError,)) is None
