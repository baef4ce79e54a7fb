"""The table of failures: what users and operators read, and the page that is made from it."""

from __future__ import annotations

import re

import pytest

from funcmcp._oauth_proxy.failures import FAILURES, Failure
from scripts.sign_in_failures import PAGE, with_table

HELPERS = re.compile(
    r"again|Report it to the operator of the server|Report it to the developers|Ask its operator|ask the operator|"
    r"report it to its developers|Add the server again|try again"
)


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "Run make reference."


def test_each_cause_has_one_meaning() -> None:
    causes = [failure.cause for failure in FAILURES]
    assert len(causes) == len(set(causes)) > 30


@pytest.mark.parametrize("failure", FAILURES, ids=[failure.cause for failure in FAILURES])
def test_a_failure_says_who_can_help_and_can_be_in_a_header_a_table_and_a_log(failure: Failure) -> None:
    assert re.fullmatch(r"[a-z_]+", failure.cause)
    assert HELPERS.search(failure.user), failure.user
    assert failure.user.endswith(".")
    assert failure.operator.endswith(".")
    assert "|" not in failure.user + failure.operator
    assert (failure.user + failure.operator).isascii()
    assert '"' not in failure.user
    assert "\\" not in failure.user
    assert len(failure.user) <= 200
    assert len(failure.operator) <= 300


@pytest.mark.parametrize("failure", FAILURES, ids=[failure.cause for failure in FAILURES])
def test_the_user_reads_nothing_of_the_configuration(failure: Failure) -> None:
    assert not re.search(r"client_id|secret|issuer|SSL_|FUNCMCP_|OAuthProxy|nonce|ID token", failure.user)
