"""Whose a session, a stream, a question and a state are, at instances that share them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx2
import pytest

from tests.cluster.serving import instances
from tests.cluster.tokens import Tokens
from tests.instances import Caller, per_request, text_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.instances import Events
    from tests.redis_server import RedisServer

    Sign: TypeAlias = Callable[[str | None], Caller]

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")

MENU = "menu://today"


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return Tokens()


@pytest.fixture(scope="module")
def closed(redis: RedisServer, tokens: Tokens) -> Iterator[list[str]]:
    """Three instances for those who have a token."""
    with instances(redis, 3, tokens=tokens) as urls:
        yield urls


@pytest.fixture(scope="module")
def signed(redis: RedisServer, tokens: Tokens) -> Iterator[list[str]]:
    """Two instances for those who have a token, with signed sessions."""
    with instances(redis, 2, "signed", tokens=tokens) as urls:
        yield urls


@pytest.fixture(scope="module")
def opened(redis: RedisServer, tokens: Tokens) -> Iterator[list[str]]:
    """Three instances that begin sessions for nobody in particular, too."""
    with instances(redis, 3, tokens=tokens, lists="open") as urls:
        yield urls


@pytest.fixture
async def sign(tokens: Tokens) -> AsyncIterator[Sign]:
    """Make callers: somebody, or nobody in particular."""
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        yield lambda name: Caller(http, None if name is None else tokens.headers(name))


def beside(caller: Caller, other: Caller) -> Caller:
    """Return the other caller with the id of a caller's session."""
    other.session = caller.session
    return other


async def rest(events: Events) -> list[dict[str, Any]]:
    """Read a stream to its end."""
    messages = []
    while (message := await events.message()) is not None:
        messages.append(message)
    return messages


def data(messages: list[dict[str, Any]]) -> list[str | None]:
    """Return what log messages say, and None for each other one."""
    return [message.get("params", {}).get("data") for message in messages]


async def broken_off(caller: Caller, url: str) -> tuple[str, list[str | None]]:
    """Let a stream break off; return the id to come back with, and what was said before."""
    async with caller.stream(url, caller.request("tools/call", name="break_off", arguments={})) as events:
        said = data(await rest(events))
    return events.last_id, said


# Sessions that somebody began


@pytest.mark.parametrize("kind", ["closed", "signed"])
async def test_a_session_of_one_principal_is_never_anothers_at_any_instance(
    kind: str, sign: Sign, request: pytest.FixtureRequest
) -> None:
    urls: list[str] = request.getfixturevalue(kind)
    alice = sign("alice")
    await alice.begin(urls[0])
    bob = beside(alice, sign("bob"))
    for url in urls:
        assert (await alice.call(url, "whoami")).startswith("alice client ")
        for message in (bob.request("ping"), {"method": "notifications/initialized"}):
            assert (await bob.post(url, message)).status_code == 404
        assert (await bob.http.delete(url, headers=bob.headers)).status_code == 404
        if kind == "closed":  # signed sessions have no streams
            async with bob.stream(url) as stream:
                assert stream.response.status_code == 404
        assert (await beside(alice, sign(None)).post(url, bob.request("ping"))).status_code == 401
        renewed = beside(alice, sign("alice"))
        assert renewed.identity != alice.identity
        assert (await renewed.call(url, "whoami")).startswith("alice client ")


async def test_an_answer_to_anothers_question_does_not_count_at_any_instance(closed: list[str], sign: Sign) -> None:
    alice, bob = sign("alice"), sign("bob")
    await alice.begin(closed[0])
    await bob.begin(closed[1])
    async with alice.stream(closed[0], alice.request("tools/call", name="order", arguments={"what": "Tea"})) as events:
        question = await events.message()
        assert question is not None
        forged = {"id": question["id"], "result": {"action": "accept", "content": {"size": 666}}}
        for url in closed:
            assert (await bob.post(url, forged)).status_code == 202  # as any answer that nobody waits for
            assert (await beside(alice, sign("bob")).post(url, forged)).status_code == 404
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 1}}}
        assert (await alice.post(closed[2], answer)).status_code == 202
        ended = await events.message()
    assert ended is not None
    assert text_of(ended) == "Tea in 1"


async def test_a_stream_is_taken_up_again_by_nobody_but_its_principal(closed: list[str], sign: Sign) -> None:
    alice, bob = sign("alice"), sign("bob")
    await alice.begin(closed[0])
    await bob.begin(closed[1])
    last, said = await broken_off(alice, closed[0])
    for number, url in enumerate(closed[:2]):  # the one that has the stream, and one that has not
        async with beside(alice, sign("bob")).stream(url, last_event_id=last) as stream:
            assert stream.response.status_code == 404
        async with bob.stream(url, last_event_id=last) as stream:  # his own stream of changes
            await alice.call(closed[2], "grow", name=f"more_of_alice_{number}")
            told = await stream.message()
            assert told is not None
            assert told["method"] == "notifications/tools/list_changed"
    async with alice.stream(closed[1], last_event_id=last) as stream:
        assert [*said, *data(await rest(stream))] == ["before", "after", None]


@pytest.mark.parametrize("kind", ["closed", "signed"])
async def test_a_state_is_taken_from_nobody_but_the_principal_who_was_asked(
    kind: str, sign: Sign, request: pytest.FixtureRequest
) -> None:
    urls: list[str] = request.getfixturevalue(kind)
    message, headers = per_request("tools/call", name="order", arguments={"what": "Tea"})
    asked = (await sign("alice").post(urls[0], message, **headers)).json()["result"]
    [key] = asked["inputRequests"]
    message["params"]["inputResponses"] = {key: {"action": "accept", "content": {"size": 3}}}
    message["params"]["requestState"] = asked["requestState"]
    for url in urls:
        refused = await sign("bob").post(url, message, **headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32602)
        assert (await sign(None).post(url, message, **headers)).status_code == 401
        assert text_of((await sign("alice").post(url, message, **headers)).json()) == "Tea in 3"


# A session that nobody in particular began


async def in_one_session(urls: list[str], sign: Sign) -> tuple[Caller, Caller, Caller]:
    """Begin a session for nobody in particular; return nobody, Alice and Bob in it."""
    nobody = sign(None)
    await nobody.begin(urls[0])
    return nobody, beside(nobody, sign("alice")), beside(nobody, sign("bob"))


async def test_who_signs_in_during_a_session_goes_on_with_it_at_every_instance(opened: list[str], sign: Sign) -> None:
    nobody, alice, bob = await in_one_session(opened, sign)
    for url in opened:
        assert (await nobody.post(url, nobody.request("tools/call", name="whoami", arguments={}))).status_code == 401
        assert (await alice.call(url, "whoami")).startswith("alice client ")
        assert (await bob.call(url, "whoami")).startswith("bob client ")


async def test_in_a_session_of_nobody_an_answer_at_another_instance_counts_from_who_was_asked(
    opened: list[str], sign: Sign
) -> None:
    nobody, alice, bob = await in_one_session(opened, sign)
    async with alice.stream(opened[0], alice.request("tools/call", name="order", arguments={"what": "Tea"})) as events:
        question = await events.message()
        assert question is not None
        forged = {"id": question["id"], "result": {"action": "accept", "content": {"size": 666}}}
        for url in opened:
            for other in (nobody, bob):
                assert (await other.post(url, forged)).status_code == 202
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 2}}}
        assert (await alice.post(opened[1], answer)).status_code == 202
        ended = await events.message()
    assert ended is not None
    assert text_of(ended) == "Tea in 2"


async def test_in_a_session_of_nobody_a_run_is_cancelled_from_another_instance_by_its_principal_alone(
    opened: list[str], sign: Sign
) -> None:
    nobody, alice, bob = await in_one_session(opened, sign)
    call = alice.request("tools/call", name="order", arguments={"what": "Tea"})
    cancel = {"method": "notifications/cancelled", "params": {"requestId": call["id"]}}
    async with alice.stream(opened[0], call) as events:
        question = await events.message()
        assert question is not None
        for url in opened:
            for other in (nobody, bob):
                assert (await other.post(url, cancel)).status_code == 202
        answer = {"id": question["id"], "result": {"action": "accept", "content": {"size": 2}}}
        await alice.post(opened[2], answer)
        ended = await events.message()
        assert ended is not None
        assert text_of(ended) == "Tea in 2"
    call = alice.request("tools/call", name="wait", arguments={})
    async with alice.stream(opened[0], call) as events:
        assert await events.message() is not None
        await alice.post(opened[1], {**cancel, "params": {"requestId": call["id"]}})
        assert await events.message() is None


async def logged(caller: Caller, url: str) -> list[str]:
    """Return the levels of the log messages that come with a call."""
    async with caller.stream(url, caller.request("tools/call", name="log", arguments={})) as events:
        return [message["params"]["level"] for message in await rest(events) if "method" in message]


async def test_in_a_session_of_nobody_each_principal_has_a_log_level_of_its_own(opened: list[str], sign: Sign) -> None:
    nobody, alice, bob = await in_one_session(opened, sign)
    assert "result" in await alice.ask(opened[1], "logging/setLevel", level="error")
    assert "result" in await nobody.ask(opened[1], "logging/setLevel", level="emergency")
    for url in (opened[0], opened[2]):  # these meet both of them only now
        assert await logged(alice, url) == ["error"]
        assert await logged(bob, url) == ["info", "error"]


async def test_in_a_session_of_nobody_each_principal_has_streams_and_subscriptions_of_its_own(
    opened: list[str], sign: Sign
) -> None:
    nobody, alice, bob = await in_one_session(opened, sign)
    assert "result" in await alice.ask(opened[0], "resources/subscribe", uri=MENU)
    assert "result" in await bob.ask(opened[1], "resources/subscribe", uri="menu://bob")
    async with AsyncExitStack() as streams, alice.stream(opened[1]) as hers, bob.stream(opened[2]) as his:
        async with alice.stream(opened[2]) as second:
            assert second.response.status_code == 409
        nobodys = await streams.enter_async_context(nobody.stream(opened[0]))
        assert {stream.response.status_code for stream in (hers, his, nobodys)} == {200}
        for uri in (MENU, "menu://bob"):
            assert await bob.call(opened[0], "touch", uri=uri) == uri
        told = [await hers.message(), await his.message()]
        assert [message["params"] for message in told if message] == [{"uri": MENU}, {"uri": "menu://bob"}]
        await bob.call(opened[0], "grow", name="more_for_all")
        for stream in (hers, his, nobodys):  # nobody in particular has heard of nothing before
            message = await stream.message()
            assert message is not None
            assert message["method"] == "notifications/tools/list_changed"
        assert (await nobody.http.delete(opened[2], headers=nobody.headers)).status_code == 204
        for stream in (hers, his, nobodys):
            assert await rest(stream) == []
    for caller in (nobody, alice, bob):
        for url in opened:
            assert (await caller.post(url, caller.request("ping"))).status_code == 404


async def test_in_a_session_of_nobody_a_stream_is_taken_up_again_at_another_instance_by_its_principal_alone(
    opened: list[str], sign: Sign
) -> None:
    nobody, alice, bob = await in_one_session(opened, sign)
    last, said = await broken_off(alice, opened[0])
    for number, other in enumerate((nobody, bob)):
        async with other.stream(opened[number], last_event_id=last) as stream:  # its own stream of changes
            await alice.call(opened[2], "grow", name=f"more_for_{number}")
            told = await stream.message()
            assert told is not None
            assert told["method"] == "notifications/tools/list_changed"
    async with alice.stream(opened[1], last_event_id=last) as stream:
        assert [*said, *data(await rest(stream))] == ["before", "after", None]


async def test_a_principals_own_session_may_be_begun_where_nobody_may(opened: list[str], sign: Sign) -> None:
    alice = sign("alice")
    await alice.begin(opened[0], clientInfo={"name": "hers", "version": "1"})
    for other in (sign(None), sign("bob")):
        for url in opened:
            assert (await beside(alice, other).post(url, alice.request("ping"))).status_code == 404
    assert (await alice.call(opened[1], "whoami")).startswith("alice hers ")
