"""The `_meta` of the per-request era."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol import envelope
from funcmcp._protocol.errors import InvalidParams
from tests import schemas

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META: dict[str, Any] = {VERSION: "2026-07-28", CAPABILITIES: {}}


@pytest.mark.parametrize(
    "meta",
    [
        META,
        {**META, CLIENT_INFO: {"name": "a", "version": "1"}},
        {**META, LOG_LEVEL: "debug", "progressToken": 1},
        {**META, VERSION: "v999.0.0"},
    ],
)
def test_a_complete_envelope_is_read(meta: dict[str, Any]) -> None:
    assert envelope.read_meta({"_meta": meta}) == meta


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({}, "_meta"),
        ({"_meta": None}, "_meta"),
        ({"_meta": []}, "_meta"),
        ({"_meta": {}}, VERSION),
        ({"_meta": {CAPABILITIES: {}}}, VERSION),
        ({"_meta": {**META, VERSION: 20260728}}, VERSION),
        ({"_meta": {VERSION: "2026-07-28"}}, CAPABILITIES),
        ({"_meta": {**META, CAPABILITIES: None}}, CAPABILITIES),
        ({"_meta": {**META, CAPABILITIES: []}}, CAPABILITIES),
        ({"_meta": {**META, CLIENT_INFO: "curl"}}, CLIENT_INFO),
        ({"_meta": {**META, LOG_LEVEL: "loud"}}, LOG_LEVEL),
        ({"_meta": {**META, LOG_LEVEL: ["info"]}}, LOG_LEVEL),
        ({"_meta": {**META, "progressToken": []}}, "progressToken"),
        ({"_meta": {**META, "progressToken": True}}, "progressToken"),
    ],
)
def test_a_fault_in_the_envelope_is_invalid_params_and_names_the_member(params: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        envelope.read_meta(params)
    assert named in caught.value.message


@pytest.mark.parametrize(
    ("params", "claims"),
    [
        ({"_meta": META}, True),
        ({"_meta": {VERSION: None}}, True),
        ({"_meta": {CAPABILITIES: {}}}, False),
        ({"_meta": {"progressToken": 1}}, False),
        ({"_meta": [VERSION]}, False),
        ({}, False),
        (None, False),
        ([VERSION], False),
    ],
)
def test_params_claim_the_per_request_era_by_naming_a_version_in_their_meta(params: object, claims: bool) -> None:
    assert envelope.carries_version(params) is claims


def test_an_unsupported_version_is_told_with_the_supported_ones() -> None:
    error = envelope.unsupported_version("v999.0.0", ["2026-07-28", "2025-11-25"]).payload()
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28", "2025-11-25"], "requested": "v999.0.0"}
    schemas.validate({"jsonrpc": "2.0", "id": 1, "error": error}, "2026-07-28")


def test_a_refused_version_is_not_among_the_supported_ones() -> None:
    """https://github.com/Higangssh/homebutler/issues/133: a client would repeat the request."""
    both = ["2026-07-28", "2025-11-25", "2024-11-05"]
    assert envelope.unsupported_version("2024-11-05", both).data == {"supported": both[:1], "requested": "2024-11-05"}
    only = envelope.unsupported_version("2024-11-05", both[1:]).data
    assert only == {"supported": both[1:], "requested": "2024-11-05"}  # which `initialize` may name


def test_a_very_long_version_is_not_sent_back_whole() -> None:
    data = envelope.unsupported_version("v" * 10_000, []).data
    assert isinstance(data, dict)
    assert data["requested"] == "v" * 200
