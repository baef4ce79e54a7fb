"""URIs that a client subscribed to."""

from __future__ import annotations

import pytest

from funcmcp._protocol.errors import InvalidParams
from funcmcp._server.connections.subscribed_uris import SubscribedURIs
from funcmcp._server.limits import LimitReachedError, Limits
from funcmcp._server.load import Load

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

ALICE, BOB = "principal:alice", "principal:bob"


def test_it_is_a_set() -> None:
    subscribed = SubscribedURIs()
    for uri in ("a:b", "a:b", "a:c"):
        subscribed.add(uri)
    for uri in ("a:c", "a:c", "a:d"):
        subscribed.discard(uri)
    assert (set(subscribed), len(subscribed), "a:b" in subscribed, "a:c" in subscribed) == ({"a:b"}, 1, True, False)


def test_the_first_caller_pays_until_it_is_closed() -> None:
    budget = Load(Limits()).subscriptions
    subscribed, other = SubscribedURIs(), SubscribedURIs()
    subscribed.add("a:" + "x" * 1000)
    subscribed.charge_to(budget, ALICE)
    subscribed.charge_to(budget, BOB)
    other.charge_to(budget, ALICE)
    before = budget.used
    assert before > 1000
    subscribed.add("a:b")
    assert budget.used > before
    subscribed.replace(["a:" + "x" * 1000])
    assert budget.used == before
    for uris in (subscribed, other, subscribed):
        uris.close()
    assert budget.used == 0
    subscribed.charge_to(budget, ALICE)
    subscribed.add("a:c")
    assert budget.used == 0


def test_what_is_reserved_counts_until_it_is_closed() -> None:
    budget = Load(Limits(subscription_bytes_per_principal=1000)).subscriptions
    subscribed = SubscribedURIs()
    subscribed.charge_to(budget, ALICE)
    subscribed.add("a:b")
    before = budget.used
    subscribed.reserve(500)
    with pytest.raises(LimitReachedError):
        subscribed.reserve(500)
    assert budget.used == before + 500
    subscribed.replace(["a:c"])
    assert budget.used == before + 500
    subscribed.close()
    assert budget.used == 0
    SubscribedURIs().reserve(10**9)


def test_what_is_too_much_is_refused() -> None:
    subscribed = SubscribedURIs()
    subscribed.check([f"a:{number}" for number in range(1000)])
    for uris in ([f"a:{number}" for number in range(1001)], ["a:" + "x" * 8191], [f"{n}" * 8000 for n in range(99)]):
        with pytest.raises(InvalidParams):
            subscribed.check(uris)
    subscribed.charge_to(Load(Limits(subscription_bytes_per_principal=450)).subscriptions, ALICE)
    subscribed.check(["a:b"])
    with pytest.raises(LimitReachedError) as refused:
        subscribed.check(["a:b", "a:c"])
    assert refused.value.is_caller_limit


def test_a_watch_ends_with_its_subscription() -> None:
    subscribed, ended = SubscribedURIs(), list[str]()
    for uri in ("a:b", "a:c", "a:d", "a:e"):
        subscribed.add(uri)
        subscribed.watch(uri, lambda uri=uri: ended.append(uri))  # type: ignore[misc]
    subscribed.watch("a:b", lambda: ended.append("second of a:b"))
    assert ended == ["second of a:b"]
    subscribed.discard("a:b")
    subscribed.discard("a:b")
    subscribed.replace(["a:d", "a:e"])
    assert ended[1:] == ["a:b", "a:c"]
    subscribed.close()
    subscribed.watch("a:f", lambda: ended.append("a:f"))
    assert ended[3:] == ["a:d", "a:e", "a:f"]
