"""Renewals that have not reached the client: bounded in number and time."""

from __future__ import annotations

from funcmcp._oauth_proxy import renewals as renewals_module
from funcmcp._oauth_proxy.renewals import Renewals
from funcmcp._oauth_proxy.upstream import SignIn
from tests.auth.making_tokens import Clock

FIRST, SECOND = SignIn(None, "refresh-1"), SignIn(None, "refresh-2")


def test_a_renewal_counts_for_its_token_until_it_is_forgotten() -> None:
    renewals = Renewals()
    renewals.keep("a", FIRST)
    assert (renewals.get("a"), renewals.get("b")) == (FIRST, None)
    renewals.forget("a")
    renewals.forget("a")
    assert renewals.get("a") is None


def test_further_attempts_do_not_prolong_a_renewal() -> None:
    clock = Clock()
    renewals = Renewals(clock)
    renewals.keep("a", FIRST)
    clock.now += 200
    renewals.keep("a", SECOND)
    assert renewals.get("a") == FIRST
    clock.now += 100
    assert renewals.get("a") is None
    renewals.keep("b", SECOND)
    assert len(renewals._renewals) == 1


def test_the_oldest_renewal_leaves_if_there_are_many() -> None:
    renewals = Renewals(Clock())
    for number in range(renewals_module._MAX_RENEWALS + 1):
        renewals.keep(str(number), FIRST)
    assert len(renewals._renewals) == renewals_module._MAX_RENEWALS
    assert renewals.get("0") is None
