"""Handshake, discovery, ping and log level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.connections.conversation import Conversation
from funcmcp._server.handlers.lifecycle import negotiate
from tests import schemas
from tests.server.parts import NEWEST, PER_REQUEST, answer, context, server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._server.dispatch import Server
    from funcmcp._state.sessions.store import Handshake

INFO = {"name": "client", "version": "1"}


def params(version: object = NEWEST, **members: Any) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": INFO, **members}


def negotiated(params: dict[str, Any], revisions: Sequence[str] = schemas.REVISIONS) -> Handshake:
    return negotiate(params, {date: REVISIONS[date] for date in revisions})


async def initialized(served: Server, revision: str) -> dict[str, Any]:
    asked = context("initialize", params(revision), revision=revision)
    return validated((await answer(served, asked))["result"])


def validated(result: dict[str, Any]) -> dict[str, Any]:
    schemas.validate({"jsonrpc": "2.0", "id": 1, "result": result}, result["protocolVersion"], "initialize")
    return result


@pytest.mark.parametrize("version", schemas.HANDSHAKE_REVISIONS)
async def test_a_supported_revision_is_agreed_on(version: str) -> None:
    handshake = negotiated(params(version, capabilities={"roots": {}}))
    assert (handshake.revision, handshake.capabilities, handshake.info) == (version, {"roots": {}}, INFO)
    result = await initialized(server(title="Orders", instructions="Ask first."), version)
    assert result["protocolVersion"] == version
    assert result["instructions"] == "Ask first."


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", "", "latest", "2025-06-1"])
def test_for_any_other_revision_the_newest_with_a_handshake_is_offered(version: str) -> None:
    assert negotiated(params(version)).revision == NEWEST


def test_only_what_the_server_speaks_is_offered() -> None:
    assert negotiated(params(NEWEST), ["2025-03-26", "2024-11-05", PER_REQUEST]).revision == "2025-03-26"


async def test_instructions_that_are_not_set_are_left_out() -> None:
    assert "instructions" not in await initialized(server(), NEWEST)


def test_capabilities_and_info_may_be_absent() -> None:
    handshake = negotiated({"protocolVersion": NEWEST})
    assert (handshake.capabilities, handshake.info) == ({}, {})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "protocolVersion"),
        (params(None), "protocolVersion"),
        (params(20251125), "protocolVersion"),
        (params([NEWEST]), "protocolVersion"),
        (params(capabilities=None), "capabilities"),
        (params(capabilities=[]), "capabilities"),
        (params(clientInfo="curl"), "clientInfo"),
        (params(clientInfo={"name": "x" * 8192, "version": "1"}), "8192"),
        (params(capabilities={"experimental": {"x": "y" * 8192}}), "8192"),
    ],
)
def test_wrong_parameters_are_invalid_params(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParams, match=named):
        negotiated(given)


def test_a_server_without_a_handshake_names_its_revisions() -> None:
    with pytest.raises(InvalidParams) as caught:
        negotiated(params(), [PER_REQUEST])
    assert caught.value.data == {"supported": [PER_REQUEST]}


async def test_discovery_names_revisions_capabilities_and_how_long_to_keep_them() -> None:
    served = server(instructions="Ask first.", list_ttl=1.5)
    result = (await answer(served, context("server/discover", revision=PER_REQUEST)))["result"]
    assert result["supportedVersions"] == sorted(schemas.REVISIONS, reverse=True)
    assert result["capabilities"] == {"tools": {"listChanged": True}}
    assert result["instructions"] == "Ask first."
    assert (result["ttlMs"], result["cacheScope"]) == (1500, "public")
    assert "serverInfo" not in result


async def test_discovery_without_instructions_leaves_them_out() -> None:
    assert "instructions" not in (await answer(server(), context("server/discover", revision=PER_REQUEST)))["result"]


@pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
async def test_a_ping_is_answered_with_nothing(revision: str) -> None:
    assert (await answer(server(), context("ping", revision=revision)))["result"] == {}


@pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
async def test_a_level_is_remembered_for_the_session(revision: str) -> None:
    conversation = Conversation()
    asked = context("logging/setLevel", {"level": "critical"}, revision=revision, conversation=conversation)
    assert (await answer(server(), asked))["result"] == {}
    assert conversation.log_level == "critical"


@pytest.mark.parametrize("level", [None, "loud", "INFO", 3, ["info"], {}])
async def test_a_level_that_does_not_exist_is_invalid_params(level: object) -> None:
    conversation = Conversation()
    asked = context("logging/setLevel", {"level": level}, conversation=conversation)
    assert (await answer(server(), asked))["error"]["code"] == -32602
    assert conversation.log_level == "info"
