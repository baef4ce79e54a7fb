"""Whose values a call reads and writes, on each transport."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

from funcmcp._auth.principal import Principal
from funcmcp._server.calls.value_owner import value_owner_of
from funcmcp._state.caller_values import ValueOwner
from tests.server.parts import context

if TYPE_CHECKING:
    import pytest


class HTTP:
    """An HTTP request, as far as it says who calls."""

    def __init__(
        self,
        subject: str | None = None,
        transport: str | None = "tcp",
        *,
        by_user: bool = False,
        caller: str | None = "a192.0.2.7",
    ) -> None:
        self.principal = None if subject is None else Principal(subject)
        self.caller = caller
        self.network_transport = transport
        self.by_user = by_user


def owner(http: Any, *, session_id: str | None = None, connection_id: str | None = None) -> ValueOwner | None:
    asked = context("tools/call", {"name": "add"})
    asked.http = http
    asked.client.session_id = session_id
    asked.client.connection_id = connection_id
    return value_owner_of(asked)


def test_a_principal_comes_before_its_session_and_an_anonymous_session_has_an_address() -> None:
    ada, session, other = owner(HTTP("ada"), session_id="s"), owner(HTTP(), session_id="s"), owner(HTTP("bob"))
    assert ada == owner(HTTP("ada"))
    assert ada is not None
    assert session is not None
    assert len({ada.mark, session.mark, other and other.mark}) == 3
    assert ada.address is None
    assert session.address is not None
    assert "192" not in session.address


def test_a_connection_is_its_own_owner_and_without_one_nobody_is() -> None:
    assert owner(HTTP()) is None
    assert owner(HTTP(), connection_id="c") != owner(HTTP(), connection_id="d")
    session, connection = owner(HTTP(), session_id="s"), owner(HTTP(), connection_id="c")
    assert session is not None
    assert connection == ValueOwner("connection c", session.address)


def test_an_owner_does_not_show_the_session_id_and_an_unknown_address_is_one_for_all() -> None:
    session = owner(HTTP(caller=None), session_id="secret-session-id")
    assert session is not None
    assert "secret" not in session.mark
    assert session.address == "unknown"


def test_the_user_of_the_process_is_the_same_on_stdio_and_in_memory_and_of_one_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = owner(HTTP(by_user=True), connection_id="c")
    assert user == owner(HTTP(transport=None))
    monkeypatch.setattr(platform, "node", lambda: "another")
    assert owner(HTTP(by_user=True)) != user
    monkeypatch.delattr(os, "getuid")
    assert owner(HTTP(by_user=True)) != user
