"""`completion/complete`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.completion import Completion
from funcmcp._protocol.errors import ToolError
from funcmcp._server.calls.feature import TimeLimit
from tests import schemas
from tests.server.parts import NEWEST, answer, context, prompt, resource, server, template, tool

if TYPE_CHECKING:
    from funcmcp._server.catalog.features import Completer
    from funcmcp._server.dispatch import Server

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
COMPLETE = "completion/complete"
GREET = {"type": "ref/prompt", "name": "greet"}
DAY = {"type": "ref/resource", "uri": "menu://{day}/{dish}"}


def giving(found: Completion | Exception) -> Completer:
    async def complete(*_: Any) -> Completion:
        if isinstance(found, Exception):
            raise found
        return found

    return complete


def serving(found: Completion | Exception = Completion(["monday"])) -> Server:  # noqa: B008 - frozen
    return server(
        prompt("greet", completers=("a",)),
        prompt("silent"),
        template("menu://{day}/{dish}", completers={"day": giving(found)}),
        resource("menu://today"),
    )


async def complete(
    reference: object, name: object = "day", value: object = "m", revision: str = NEWEST, **more: Any
) -> dict[str, Any]:
    params = {"ref": reference, "argument": {"name": name, "value": value}, **more.pop("params", {})}
    message: dict[str, Any] = await answer(serving(**more), context(COMPLETE, params, revision=revision))
    return message


@EVERY_REVISION
async def test_an_argument_is_completed_with_what_is_known_of_the_others(revision: str) -> None:
    params = {"context": {"arguments": {"b": "other"}}}
    result = (await complete(GREET, "a", "be", revision, params=params))["result"]
    assert result["completion"] == {"values": ["be", "other"], "hasMore": False, "total": 2}


@EVERY_REVISION
async def test_a_variable_of_a_template_is_completed(revision: str) -> None:
    result = (await complete(DAY, revision=revision))["result"]
    assert result["completion"] == {"values": ["monday"], "hasMore": False, "total": 1}


@EVERY_REVISION
@pytest.mark.parametrize(("reference", "name"), [({"type": "ref/prompt", "name": "silent"}, "a"), (DAY, "dish")])
async def test_what_nobody_completes_has_no_suggestions(revision: str, reference: dict[str, Any], name: str) -> None:
    result = (await complete(reference, name, revision=revision))["result"]
    assert result["completion"] == {"values": [], "hasMore": False, "total": 0}


@pytest.mark.parametrize(
    ("found", "size", "told"),
    [
        (Completion(()), 0, {"hasMore": False, "total": 0}),
        (Completion(["x"] * 100), 100, {"hasMore": False, "total": 100}),
        (Completion(["x"] * 101), 100, {"hasMore": True, "total": 101}),
        (Completion(["x"], total=7, has_more=True), 1, {"hasMore": True, "total": 7}),
        (Completion(["x"], has_more=True), 1, {"hasMore": True}),
        (Completion(["x"] * 150, total=1000), 100, {"hasMore": True, "total": 1000}),
    ],
)
async def test_at_most_a_hundred_values_are_told_and_whether_there_are_more(
    found: Completion, size: int, told: dict[str, Any]
) -> None:
    completion = (await complete(DAY, found=found))["result"]["completion"]
    assert len(completion.pop("values")) == size
    assert completion == told


@EVERY_REVISION
@pytest.mark.parametrize(
    "reference",
    [
        None,
        "ref/prompt",
        5,
        [],
        {},
        {"name": "greet"},
        {"type": None},
        {"type": []},
        {"type": {}},
        {"type": "ref/tool", "name": "greet"},
        {"type": "ref/prompt"},
        {"type": "ref/prompt", "name": 5},
        {"type": "ref/prompt", "name": ["greet"]},
        {"type": "ref/prompt", "name": "unheard_of"},
        {"type": "ref/prompt", "uri": "menu://{day}/{dish}"},
        {"type": "ref/resource"},
        {"type": "ref/resource", "uri": 5},
        {"type": "ref/resource", "uri": {}},
        {"type": "ref/resource", "uri": "menu://today"},
        {"type": "ref/resource", "uri": "menu://monday/fish"},
        {"type": "ref/resource", "name": "greet"},
    ],
)
async def test_a_reference_to_nothing_that_can_be_completed_is_invalid(revision: str, reference: object) -> None:
    error = (await complete(reference, "a", revision=revision))["error"]
    assert error["code"] == -32602


@EVERY_REVISION
@pytest.mark.parametrize(
    "argument",
    [
        None,
        "day",
        [],
        {},
        {"name": "day"},
        {"value": "m"},
        {"name": "day", "value": 5},
        {"name": "day", "value": None},
        {"name": ["day"], "value": "m"},
        {"name": "unheard_of", "value": "m"},
        {"name": "", "value": ""},
        {"name": "x" * 10_000, "value": ""},
    ],
)
async def test_an_argument_that_is_none_is_invalid(revision: str, argument: object) -> None:
    error = (await complete(DAY, revision=revision, params={"argument": argument}))["error"]
    assert error["code"] == -32602
    assert len(error["message"]) < 300


@EVERY_REVISION
@pytest.mark.parametrize("known", [5, [], {"arguments": []}, {"arguments": {"day": 5}}])
async def test_a_context_that_is_none_is_invalid(revision: str, known: object) -> None:
    error = (await complete(DAY, revision=revision, params={"context": known}))["error"]
    assert error["code"] == -32602


async def test_an_empty_context_is_one() -> None:
    assert "result" in await complete(DAY, params={"context": {}})
    assert "result" in await complete(DAY, params={"context": {"arguments": None}})


@EVERY_REVISION
async def test_a_completer_that_fails_is_an_internal_error(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    error = (await complete(DAY, revision=revision, found=KeyError("hunter2")))["error"]
    assert error["code"] == -32603
    assert error["data"]["errorId"] in caplog.text


async def test_a_completer_may_tell_why_it_has_nothing() -> None:
    error = (await complete(DAY, found=ToolError("The kitchen is closed.")))["error"]
    assert error == {"code": -32603, "message": "The kitchen is closed."}


async def test_a_completer_has_the_time_of_its_feature() -> None:
    async def hang(*_: Any) -> Completion:
        await asyncio.Event().wait()
        return Completion([])

    served = server(template("menu://{day}/{dish}", completers={"day": hang}, time_limit=TimeLimit(0.01)))
    params = {"ref": DAY, "argument": {"name": "day", "value": ""}}
    error = (await answer(served, context(COMPLETE, params)))["error"]
    assert error["message"] == "It did not finish within 0.01 seconds (timeout=)."


@EVERY_REVISION
async def test_a_server_that_completes_nothing_has_no_completions(revision: str) -> None:
    params = {"ref": GREET, "argument": {"name": "a", "value": ""}}
    hidden = server(prompt("greet", completers=("a",)), offer_prompts=False)
    for served in (server(tool("t"), prompt("greet")), hidden):
        error = (await answer(served, context(COMPLETE, params, revision=revision)))["error"]
        assert error["code"] == -32601
