"""Wrong shapes, sizes and numbers: the right code and status, and the next good request is answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.conftest import SMALL_LIMIT
from tests.wire.offering import offer
from tests.wire.peer import BATCHES, ERAS, HANDSHAKE, PER_REQUEST, connect, exchange, to_bytes

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer, Peer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

INVALID_REQUEST, INVALID_PARAMS, PARSE_ERROR = (400, -32600), -32602, (400, -32700)
DEFAULT_LIMIT = 4 * 1024 * 1024

_NOT_MESSAGES: dict[str, dict[str, Any]] = {
    "no jsonrpc": {"id": 1, "method": "tools/list"},
    "jsonrpc 1.0": {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
    "jsonrpc a number": {"jsonrpc": 2.0, "id": 1, "method": "tools/list"},
    "jsonrpc null": {"jsonrpc": None, "id": 1, "method": "tools/list"},
    "jsonrpc a list": {"jsonrpc": ["2.0"], "id": 1, "method": "tools/list"},
    "method a number": {"jsonrpc": "2.0", "id": 1, "method": 1},
    "method null": {"jsonrpc": "2.0", "id": 1, "method": None},
    "method a list": {"jsonrpc": "2.0", "id": 1, "method": ["tools/list"]},
    "no method": {"jsonrpc": "2.0", "id": 1, "params": {}},
    "params a list": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []},
    "params a string": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": "x"},
    "result and error": {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}},
    "result a list": {"jsonrpc": "2.0", "id": 1, "result": []},
    "error a string": {"jsonrpc": "2.0", "id": 1, "error": "x"},
    "result without id": {"jsonrpc": "2.0", "result": {}},
    "Method": {"jsonrpc": "2.0", "id": 1, "Method": "tools/list"},
    "METHOD": {"jsonrpc": "2.0", "id": 1, "METHOD": "tools/list"},
    "JSONRPC": {"JSONRPC": "2.0", "id": 1, "method": "tools/list"},
    "jsonrpc with a long s": {"j\u017fonrpc": "2.0", "id": 1, "method": "tools/list"},
}


@rules.verifies(rules.H10, rules.THREAT_25, rules.TRAP_6)
@pytest.mark.parametrize("name", _NOT_MESSAGES)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_message_of_the_wrong_shape_is_400(offering: Offering, revision: str, name: str) -> None:
    """The error has the id of the message if that is valid."""
    peer = await connect(offering.app, revision)
    answer = await peer.post(_NOT_MESSAGES[name], like=peer.message("tools/list"))
    assert answer.outcome == INVALID_REQUEST
    assert answer.message.get("id", 1) == 1
    await peer.works()


async def test_null_is_an_absent_member(offering: Offering) -> None:
    """The per-request era requires `_meta`, so its params can't be null."""
    peer = await connect(offering.app, HANDSHAKE)
    for method in ("tools/list", "ping"):
        answer = await peer.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": None})
        assert answer.outcome == (200, None)
    for revision in ERAS:
        peer = await connect(offering.app, revision)
        without = await peer.request("tools/call", {"name": "add"}, id="mine")
        assert (await peer.request("tools/call", {"name": "add", "arguments": None}, id="mine")).body == without.body
        listed = await peer.request("tools/list", {}, id="mine")
        for cursor in (None, ""):
            assert (await peer.request("tools/list", {"cursor": cursor}, id="mine")).body == listed.body
    peer = await connect(offering.app, PER_REQUEST)
    message = {**peer.message("tools/list", {}), "params": None}
    assert (await peer.post(message)).outcome == (400, INVALID_PARAMS)


@rules.verifies(rules.THREAT_25, rules.J4)
@pytest.mark.parametrize("name", ["ID", "Id", "\u0131d"])
@pytest.mark.parametrize("revision", ERAS)
async def test_an_id_under_another_name_is_none(offering: Offering, revision: str, name: str) -> None:
    """A message without `id` is a notification, which calls nothing."""
    peer = await connect(offering.app, revision)
    message = peer.message("tools/call", {"name": "wait", "arguments": {"key": name}})
    message[name] = message.pop("id")
    assert (await peer.post(message)).status == 202
    assert not offering.gates.was("arrived", name)


@rules.verifies(rules.H16, rules.THREAT_25, rules.THREAT_36)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": None},
        {"name": 1},
        {"name": ["add"]},
        {"name": {"add": 1}},
        {"Name": "add"},
        {"NAME": "add"},
        {"na\u006de ": "add"},
        {"name": "ADD", "arguments": {}},
        {"name": "add ", "arguments": {}},
        {"name": "\uff41dd", "arguments": {}},
        {"name": "", "arguments": {}},
        {"name": "x" * 50_000},
        {"name": "add\x00"},
        {"name": "add", "arguments": []},
        {"name": "add", "arguments": "a=1"},
        {"name": "add", "arguments": 1},
    ],
)
@pytest.mark.parametrize(("revision", "status"), [(HANDSHAKE, 200), (PER_REQUEST, 400)])
async def test_a_call_of_the_wrong_shape_is_invalid_params(
    offering: Offering, revision: str, status: int, params: dict[str, Any]
) -> None:
    """The tool does not exist, or the arguments are not an object."""
    peer = await connect(offering.app, revision)
    answer = await peer.request("tools/call", params, id="mine")
    assert answer.outcome == (status, INVALID_PARAMS)
    assert answer.message["id"] == "mine"
    assert len(answer.body) < 1000
    await peer.works()


@rules.verifies(rules.H11, rules.THREAT_25)
@pytest.mark.parametrize(
    "method", ["Tools/List", "TOOLS/LIST", "tools/list ", "tools\\list", "tools/list\x00", "", "__init__", "rpc.x"]
)
@pytest.mark.parametrize(("revision", "status"), [(HANDSHAKE, 200), (PER_REQUEST, 404)])
async def test_a_method_in_any_other_spelling_is_unknown(
    offering: Offering, revision: str, status: int, method: str
) -> None:
    peer = await connect(offering.app, revision)
    assert (await peer.request(method)).outcome == (status, -32601)


@rules.verifies(rules.THREAT_21, rules.H11)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_long_method_name_is_not_sent_back_in_full(offering: Offering, revision: str) -> None:
    """The error has at most 200 characters of it."""
    answer = await (await connect(offering.app, revision)).request("x" * 50_000)
    assert answer.error["code"] == -32601
    assert len(answer.body) < 1000


def nested(peer: Peer, levels: int, opening: bytes = b"[", closing: bytes = b"]") -> tuple[bytes, dict[str, Any]]:
    """Return a call with an argument such that the whole body has so many levels, and the call itself."""
    message = peer.message("tools/call", {"name": "echo", "arguments": {"value": "PLACE"}})
    above = 3  # the message, its params, the arguments
    core = opening * (levels - above) + closing * (levels - above)
    return json.dumps(message).encode().replace(b'"PLACE"', core), message


@rules.verifies(rules.THREAT_23)
@pytest.mark.parametrize("revision", ERAS)
async def test_64_levels_are_taken_and_65_refused(offering: Offering, revision: str) -> None:
    """The message itself counts as the first level."""
    peer = await connect(offering.app, revision)
    body, like = nested(peer, 64)
    assert (await peer.post(body, like=like)).status == 200
    for levels in (65, 66, 67, 100, 300, 100_000):
        body, like = nested(peer, levels)
        assert (await peer.post(body, like=like)).status == 400, levels
    await peer.works()


@rules.verifies(rules.THREAT_23)
@pytest.mark.parametrize("revision", ERAS)
async def test_objects_nest_no_deeper_than_arrays(offering: Offering, revision: str) -> None:
    """The innermost object has a value."""
    peer = await connect(offering.app, revision)
    for levels, status in ((64, 200), (65, 400), (100, 400)):
        body, like = nested(peer, levels, b'{"a":', b"}")
        body = body.replace(b'{"a":}', b'{"a":1}')
        assert (await peer.post(body, like=like)).status == status, levels


@rules.verifies(rules.THREAT_23)
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b"[{" * 50_000])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_hundred_thousand_brackets_are_refused(offering: Offering, revision: str, body: bytes) -> None:
    """There is no RecursionError and no internal error."""
    peer = await connect(offering.app, revision)
    assert (await peer.post(body, like=peer.message("tools/list"))).status == 400
    await peer.works()


async def argument(peer: Peer, text: bytes) -> Answer:
    """Call `echo` with a JSON text as its argument."""
    message = peer.message("tools/call", {"name": "echo", "arguments": {"value": "PLACE"}})
    return await peer.post(json.dumps(message).encode().replace(b'"PLACE"', text), like=message)


_BAD_VALUES = {
    "5,000 digits": b"9" * 5000,
    "minus 5,000 digits": b"-" + b"9" * 5000,
    "100,000 digits": b"9" * 100_000,
    "1e400": b"1e400",
    "-1e400": b"-1e400",
    "digits before an exponent": b"9" * 400 + b"e1",
    "1e9999999999": b"1e9999999999",
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "nan": b"nan",
    "a lone high surrogate": b'"\\ud800"',
    "a lone low surrogate": b'"\\udc00"',
    "surrogates the wrong way round": b'"\\udc00\\ud800"',
    "a lone surrogate as a name": b'{"\\ud800": 1}',
    "raw surrogate bytes": b'"\xed\xa0\x80"',
    "latin-1": b'"\xe9"',
    "overlong": b'"\xc0\xaf"',
    "beyond Unicode": b'"\xf4\x90\x80\x80"',
    "a raw newline": b'"\n"',
    "a NUL": b'"\x00"',
    "a comment": b"/* no */ 1",
    "a trailing comma": b"[1,]",
    "single quotes": b"'x'",
}


@rules.verifies(rules.THREAT_24, rules.H10)
@pytest.mark.parametrize("name", _BAD_VALUES)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_value_that_json_does_not_have_is_refused(offering: Offering, revision: str, name: str) -> None:
    peer = await connect(offering.app, revision)
    assert (await argument(peer, _BAD_VALUES[name])).outcome == PARSE_ERROR
    await peer.works()


@rules.verifies(rules.THREAT_24)
@pytest.mark.parametrize(
    "text",
    [
        b"9" * 400,
        b"-0",
        b"1e308",
        b"1E-400",
        b"0.1e1",
        b'"\\ud83d\\ude00"',
        b'"\\u0000"',
        b'"\xef\xbb\xbf"',
        b"[[],{}]",
    ],
)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_value_at_the_edge_comes_back_as_it_was(offering: Offering, revision: str, text: bytes) -> None:
    answer = await argument(await connect(offering.app, revision), text)
    assert answer.result["structuredContent"]["value"] == json.loads(text)


@rules.verifies(rules.THREAT_24, rules.D2)
@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("revision", ERAS)
async def test_only_utf_8_without_a_mark_is_read(offering: Offering, revision: str, coding: str) -> None:
    peer = await connect(offering.app, revision)
    message = peer.message("tools/list")
    assert (await peer.post(json.dumps(message).encode(coding), like=message)).outcome == PARSE_ERROR
    await peer.works()


_REPEATED = {
    "id": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","params":%s}',
    "the same id": b'{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/list","params":%s}',
    "method": b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list","params":%s}',
    "jsonrpc": b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"tools/list","params":%s}',
    "params": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"params":%s}',
    "id, escaped": b'{"jsonrpc":"2.0","id":1,"i\\u0064":2,"method":"tools/list","params":%s}',
    "id, with a space before a colon": b'{"jsonrpc":"2.0","id":1,"id":2,"method" :"tools/list","params":%s}',
    "id, with a newline before a colon": b'{"jsonrpc":"2.0","id":1,"id":2,"method"\n:"tools/list","params":%s}',
    "method, spaced": b'{"jsonrpc" : "2.0","id" : 1,"method" : "","method" : "tools/list","params" : %s}',
}


@rules.verifies(rules.THREAT_24)
@pytest.mark.parametrize("name", _REPEATED)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_name_twice_in_the_message_is_refused(offering: Offering, revision: str, name: str) -> None:
    """A proxy that checked the message may have read the other member."""
    peer = await connect(offering.app, revision)
    message = peer.message("tools/list")
    body = _REPEATED[name] % json.dumps(message["params"]).encode()
    assert (await peer.post(body, like=message)).outcome == INVALID_REQUEST
    await peer.works()


@rules.verifies(rules.THREAT_24)
@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
@pytest.mark.parametrize("place", ["params", "_meta", "arguments"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_name_twice_in_params_meta_or_arguments_is_refused(
    offering: Offering, revision: str, place: str, blank: str
) -> None:
    """White space before other colons does not hide it."""
    peer = await connect(offering.app, revision)
    meta = {"twice_meta": 1}
    message = peer.message(
        "tools/call", {"name": "echo", "arguments": {"twice_arguments": 1}, "twice_params": 1, "_meta": meta}
    )
    name = f"twice_{place.removeprefix('_')}"
    text = (
        json.dumps(message)
        .replace('"jsonrpc":', f'"jsonrpc"{blank}:')
        .replace(f'"{name}": 1', f'"{name}":1,"{name}":2')
    )
    assert (await peer.post(text.encode(), like=message)).outcome == INVALID_REQUEST
    await peer.works()


@rules.verifies(rules.THREAT_24)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_text_that_looks_like_names_and_colons_is_only_a_text(offering: Offering, revision: str) -> None:
    """Strings have quotes and colons, white space precedes colons, and the author's values have repeated names."""
    peer = await connect(offering.app, revision)
    for text, value in (
        (rb'"\"id\":1,\"id\":2"', '"id":1,"id":2'),
        (b'{"a" : {"a" : 1}}', {"a": {"a": 1}}),
        (b'{"a":1,"a":2}', {"a": 2}),
    ):
        answer = await argument(peer, text)
        assert answer.result["structuredContent"] == {"value": value}


async def post_parts(peer: Peer, parts: list[bytes], length: str | None) -> Answer:
    """Post a body in parts with any Content-Length, or chunked without one."""
    headers = peer.headers(peer.message("tools/list"))
    pairs = [*headers.items(), *([("content-length", length)] if length is not None else [])]
    return await exchange(peer.app, "POST", pairs, parts).answer()


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_413(
    limited: Offering, revision: str, declared: bool
) -> None:
    """The body has a Content-Length or none, and arrives in one part or in many."""
    peer = await connect(limited.app, revision)
    body = to_bytes(peer.message("tools/list"))
    for size, status in ((SMALL_LIMIT, 200), (SMALL_LIMIT + 1, 413)):
        padded = body + b" " * (size - len(body))
        length = str(size) if declared else None
        for parts in (
            [padded],
            [padded[:-1], padded[-1:]],
            [padded[start : start + 999] for start in range(0, size, 999)],
        ):
            assert (await post_parts(peer, parts, length)).status == status
    await peer.works()


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_body_declared_too_large_is_413_before_it_is_read(limited: Offering, revision: str) -> None:
    """The value of Content-Length is sufficient for the rejection."""
    peer = await connect(limited.app, revision)
    for length in (str(SMALL_LIMIT + 1), "9" * 30, "9" * 5000):
        answer = await post_parts(peer, [b"x"], length)
        assert (answer.status, answer.reads) == (413, 0)


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("length", ["10", "0", "-1", "abc", "", "\xb2", "1e9"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_content_length_that_lies_does_not_lift_the_limit(
    limited: Offering, revision: str, length: str
) -> None:
    """Received bytes are counted, and reading stops at the limit."""
    peer = await connect(limited.app, revision)
    answer = await post_parts(peer, [b"x" * 5000] * 100, length)
    assert answer.status in {400, 413}
    assert answer.reads < 10
    await peer.works()


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("revision", ERAS)
async def test_the_default_limit_is_four_mebibytes(revision: str) -> None:
    """4,194,304 bytes are accepted, and one more byte is not."""
    peer = await connect(offer().app, revision)
    body = to_bytes(peer.message("tools/list"))
    assert (await post_parts(peer, [body + b" " * (DEFAULT_LIMIT - len(body))], None)).status == 200
    assert (await post_parts(peer, [body + b" " * (DEFAULT_LIMIT + 1 - len(body))], None)).status == 413


@rules.verifies(rules.J3)
async def test_wrong_shapes_in_a_batch_run_nothing_of_it(offering: Offering) -> None:
    """One invalid message rejects the batch before any message is executed."""
    peer = await connect(offering.app, BATCHES)
    good = peer.message("tools/call", {"name": "wait", "arguments": {"key": "batch"}})
    assert (await peer.post([good, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}])).outcome == INVALID_REQUEST
    assert not offering.gates.was("arrived", "batch")
