"""Prompts and completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.features import SECRET
from tests.wire.offering import offer
from tests.wire.peer import ALL, ERAS, PER_REQUEST, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer, Peer

INVALID = {revision: (400, -32602) if revision == PER_REQUEST else (200, -32602) for revision in ALL}
GREET = {"type": "ref/prompt", "name": "greet"}
DISH = {"type": "ref/resource", "uri": "menu://dishes/{number}{?colour,half}"}


async def get(peer: Peer, name: object, arguments: object = None) -> Answer:
    params: dict[str, Any] = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return await peer.request("prompts/get", params)


async def complete(peer: Peer, reference: object, argument: object, **members: object) -> Answer:
    return await peer.request("completion/complete", {"ref": reference, "argument": argument, **members})


def texts_of(answer: Answer) -> list[str | None]:
    return [message["content"].get("text") for message in answer.result["messages"]]


@rules.verifies(rules.P1)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"who": "Ada"}, "Greet Ada 1 times in red"),
        ({"who": "", "times": "3", "colour": "blue"}, "Greet  3 times in blue"),
        ({"who": "Ada", "times": "", "colour": ""}, "Greet Ada 1 times in red"),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_prompt_makes_messages_of_its_arguments(
    stocked: Offering, revision: str, arguments: dict[str, str], text: str
) -> None:
    """Arguments are strings, and are converted to the types of the function's parameters."""
    answer = await get(await connect(stocked.app, revision), "greet", arguments)
    assert answer.result["messages"] == [{"role": "user", "content": {"type": "text", "text": text}}]


@rules.verifies(rules.P1)
@pytest.mark.parametrize("revision", ALL)
async def test_a_prompt_has_every_kind_of_content_that_the_revision_has(stocked: Offering, revision: str) -> None:
    """Content that the revision does not have becomes text."""
    result = (await get(await connect(stocked.app, revision), "everything")).result
    kinds = [message["content"]["type"] for message in result["messages"]]
    audio = "text" if revision == "2024-11-05" else "audio"
    link = "resource_link" if revision >= "2025-06-18" else "text"
    assert kinds == ["text", "image", audio, "resource", "resource", link]
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", *["user"] * 4]
    assert result["description"] == "Everything"
    assert result["_meta"]["example.com/a"] == 1


@rules.verifies(rules.P1)
@pytest.mark.parametrize(
    "name", [None, 5, True, [], ["greet"], {}, "", "Greet", "greet ", "unheard_of", "é", "x" * 5000]
)
@pytest.mark.parametrize("revision", ALL)
async def test_an_unknown_prompt_is_invalid(stocked: Offering, revision: str, name: object) -> None:
    peer = await connect(stocked.app, revision)
    answer = await get(peer, name)
    assert answer.outcome == INVALID[revision]
    assert len(answer.error["message"]) < 200
    await peer.works()


@rules.verifies(rules.P1)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (None, "who"),
        ({}, "who"),
        ({"times": "2"}, "who"),
        ({"who": "Ada", "times": "many"}, "times"),
        ({"who": "Ada", "colour": "green"}, "colour"),
        ({"who": "Ada", "Who": "Ada"}, "Who"),
        ({"who": "Ada", "unheard_of": ""}, "unheard_of"),
        ({"who": 5}, "arguments"),
        ({"who": None}, "arguments"),
        ({"who": ["Ada"]}, "arguments"),
        ({"who": {}}, "arguments"),
        ("Ada", "arguments"),
        (5, "arguments"),
        (["who"], "arguments"),
        (True, "arguments"),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_missing_and_wrong_arguments_are_invalid(
    stocked: Offering, revision: str, arguments: object, named: str
) -> None:
    """The error names the argument and repeats no value."""
    peer = await connect(stocked.app, revision)
    answer = await get(peer, "greet", arguments)
    assert answer.outcome == INVALID[revision]
    assert named in answer.error["message"]
    assert "many" not in answer.error["message"]
    await peer.works()


@rules.verifies(rules.P1, rules.H16)
@pytest.mark.parametrize("params", [{}, {"arguments": {}}, {"name": "greet", "arguments": None}])
@pytest.mark.parametrize("revision", ALL)
async def test_a_request_without_what_it_needs_is_invalid(
    stocked: Offering, revision: str, params: dict[str, Any]
) -> None:
    """An error about a missing header may come first."""
    answer = await (await connect(stocked.app, revision)).request("prompts/get", params)
    assert answer.outcome == INVALID[revision]


@rules.verifies(rules.H16, rules.THREAT_39)
@pytest.mark.parametrize(("name", "message"), [("broken", "error id"), ("slow", "0.2 seconds")])
@pytest.mark.parametrize("revision", ALL)
async def test_a_prompt_that_fails_is_an_error_that_leaks_nothing(
    stocked: Offering, revision: str, name: str, message: str
) -> None:
    """The error is -32603, and the next request is answered."""
    peer = await connect(stocked.app, revision)
    answer = await get(peer, name)
    assert answer.outcome == (200, -32603)
    assert message in answer.error["message"]
    assert SECRET.encode() not in answer.body
    await peer.works()


@rules.verifies(rules.P1)
@pytest.mark.parametrize("revision", ALL)
async def test_prompts_are_described_as_their_revision_has_it(stocked: Offering, revision: str) -> None:
    """Arguments have a name, a description and `required`."""
    listed = (await (await connect(stocked.app, revision)).request("prompts/list")).result["prompts"]
    greet = listed[0]
    assert (greet["name"], greet["description"]) == ("greet", "Greet somebody.")
    assert [(argument["name"], argument["required"]) for argument in greet["arguments"]] == [
        ("who", True),
        ("colour", False),
        ("times", False),
    ]
    assert greet["arguments"][0]["description"] == "Whom to greet"
    assert ("title" in greet, "_meta" in greet) == (revision >= "2025-06-18",) * 2
    assert ("icons" in greet) == (revision >= "2025-11-25")


@rules.verifies(rules.C1)
@pytest.mark.parametrize(
    ("reference", "argument", "members", "values"),
    [
        (GREET, {"name": "who", "value": "A"}, {}, ["Ada", "Alan"]),
        (GREET, {"name": "who", "value": "Al"}, {"context": {"arguments": {"colour": "red"}}}, ["Alan red"]),
        (GREET, {"name": "who", "value": "A"}, {"context": {}}, ["Ada", "Alan"]),
        (GREET, {"name": "colour", "value": ""}, {}, ["red", "blue"]),
        (GREET, {"name": "colour", "value": "B"}, {}, ["blue"]),
        (GREET, {"name": "times", "value": "1"}, {}, []),
        (DISH, {"name": "number", "value": "7"}, {}, ["70"]),
        (DISH, {"name": "colour", "value": "r"}, {}, ["red"]),
        (DISH, {"name": "half", "value": ""}, {}, ["1", "2"]),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_what_has_been_written_is_completed(
    stocked: Offering,
    revision: str,
    reference: dict[str, str],
    argument: dict[str, str],
    members: dict[str, Any],
    values: list[str],
) -> None:
    """The result has the values, `total` and `hasMore`."""
    answer = await complete(await connect(stocked.app, revision), reference, argument, **members)
    assert answer.result["completion"] == {"values": values, "total": len(values), "hasMore": False}


@rules.verifies(rules.C1)
@pytest.mark.parametrize("revision", ALL)
async def test_at_most_a_hundred_values_are_sent(stocked: Offering, revision: str) -> None:
    """`total` counts all values."""
    peer = await connect(stocked.app, revision)
    completed = (await complete(peer, {"type": "ref/prompt", "name": "many"}, {"name": "it", "value": ""})).result
    assert len(completed["completion"]["values"]) == 100
    assert (completed["completion"]["total"], completed["completion"]["hasMore"]) == (250, True)


IT = {"name": "who", "value": ""}


NOTHING: tuple[tuple[object, object, dict[str, Any]], ...] = (
    (None, IT, {}),
    ("greet", IT, {}),
    (5, IT, {}),
    ([GREET], IT, {}),
    ({}, IT, {}),
    ({"type": []}, IT, {}),
    ({"type": {}}, IT, {}),
    ({"type": "ref/tool", "name": "add"}, IT, {}),
    ({"type": "ref/prompt"}, IT, {}),
    ({"type": "ref/prompt", "name": {}}, IT, {}),
    ({"type": "ref/prompt", "name": "unheard_of"}, IT, {}),
    ({"type": "ref/resource", "uri": "menu://unheard_of"}, IT, {}),
    ({"type": "ref/resource", "uri": []}, IT, {}),
    (GREET, None, {}),
    (GREET, "who", {}),
    (GREET, [], {}),
    (GREET, {}, {}),
    (GREET, {"name": "who"}, {}),
    (GREET, {"value": ""}, {}),
    (GREET, {"name": 5, "value": ""}, {}),
    (GREET, {"name": "who", "value": 5}, {}),
    (GREET, {"name": "unheard_of", "value": ""}, {}),
    (DISH, IT, {}),
    (GREET, IT, {"context": []}),
    (GREET, IT, {"context": {"arguments": {"colour": 5}}}),
)
"""References, arguments and contexts that are invalid."""


@rules.verifies(rules.C1)
@pytest.mark.parametrize("revision", ALL)
async def test_a_completion_of_nothing_is_invalid(stocked: Offering, revision: str) -> None:
    peer = await connect(stocked.app, revision)
    for reference, argument, members in NOTHING:
        answer = await complete(peer, reference, argument, **members)
        assert answer.outcome == INVALID[revision], (reference, argument, members)
    await peer.works()


@rules.verifies(rules.C1)
@pytest.mark.parametrize("params", [{}, {"ref": GREET}, {"argument": IT}])
@pytest.mark.parametrize("revision", ALL)
async def test_a_completion_without_what_it_needs_is_invalid(
    stocked: Offering, revision: str, params: dict[str, Any]
) -> None:
    answer = await (await connect(stocked.app, revision)).request("completion/complete", params)
    assert answer.outcome == INVALID[revision]


@rules.verifies(rules.C1, rules.H16)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_completer_that_fails_leaks_nothing(stocked: Offering, revision: str) -> None:
    """The error is -32603."""
    peer = await connect(stocked.app, revision)
    answer = await complete(peer, {"type": "ref/prompt", "name": "stuck"}, {"name": "it", "value": "a"})
    assert answer.outcome == (200, -32603)
    assert SECRET.encode() not in answer.body
    await peer.works()


@rules.verifies(rules.V9, rules.C1, rules.R1)
@pytest.mark.parametrize(
    "method",
    [
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_switched_off_is_not_declared_and_not_found(revision: str, method: str) -> None:
    peer = await connect(offer(offer_resources=False, offer_prompts=False).app, revision)
    params: dict[str, Any] = {"uri": "menu://today", "name": "greet", "ref": GREET, "argument": IT}
    answer = await peer.request(method, params, headers={"mcp-name": params["uri"]} if "read" in method else None)
    assert answer.outcome == ((404, -32601) if peer.per_request else (200, -32601))
