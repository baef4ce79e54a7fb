"""Writes the seed corpus: inputs for each target that reach different branches. Run it after a change of this file."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "corpus"
_META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
_ASKABLE = {**_META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
_BOTH = "application/json, text/event-stream"
_EVENTS = ("GET /mcp", {"accept": "text/event-stream"})


def codec() -> list[bytes]:
    """Return valid and invalid JSON texts."""
    right = [
        "null",
        '""',
        '"\\u00e9\\ud83d\\ude00\\n\\/"',
        "[1,-0,-0.0,1e5,1E-5,0.1,123456789012345678901234567890]",
        "{}",
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[true,false]},"_meta":{}}}',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":"a","result":{}}',
        '{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"m"}}',
        '[{"jsonrpc":"2.0","id":2,"method":"ping"}]',
        ' {"a" : "b:\\"" , "c":"Infinity"} ',
        '{"params":{"x":{"a":1,"a":2}}}',
        "1.7976931348623157e308",
        "5e-324",
        "[" * 64 + "]" * 64,
    ]
    wrong = [
        "",
        "NaN",
        "[Infinity]",
        "1e400",
        "-1e999",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        "\ufeff1",
        "[1,]",
        "{'a':1}",
        "01",
        '{"id":1,"id":2}',
        '{"params":{"arguments":{"a":1,"a":2}}}',
        '{"params":{"_meta":{"a":1,"a":2}}}',
        '{"params":{},"params":{}}',
        "[" * 65 + "]" * 65,
        "[" * 300,
        '"a\tb"',
        "1" * 4301,
        "tru",
        "/**/1",
        "1 2",
    ]
    return [text.encode() for text in right + wrong] + [
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        b'"\xf4\x90\x80\x80"',
    ]


def header_values() -> list[bytes]:
    """Return the value of a header and the value in the message."""
    values = [
        "application/json",
        _BOTH,
        "*/*;q=0",
        "text/*; q=0.0, application/*;q=1",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/jsonp",
        "=?base64?w6k=?=",
        "=?base64??=",
        "=?base64?w6l=?=",
        " add ",
        "a\tb",
        "caf\u00e9",
        "=?base64?YQ==",
        "-12.50e1",
        "true",
        "1" * 401,
    ]
    texts = [
        "add",
        "\u00e9",
        "",
        "=?base64??=",
        '{"text":"x","deep":{"inner":-125}}',
        '{"text":true,"deep":{"inner":"\u00e9"}}',
        '{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"}},"text":"x"}',
        '{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}},"a":{"b":-125}}',
        '{"items":{"x-mcp-header":"B"}}',
        '{"properties":{"x-mcp-header":{"type":"string","x-mcp-header":" "}}}',
    ]
    pairs = [(value, texts[index % len(texts)]) for index, value in enumerate(values)]
    return [f"{value}\n{text}".encode("latin-1" if text.isascii() else "utf-8") for value, text in pairs]


def origins() -> list[bytes]:
    """Return Host, Origin and headers of proxies."""
    hosts = [
        "localhost",
        "127.0.0.1:8000",
        "[::1]:8000",
        "orders.example.com",
        "orders.example.com:443",
        "203.0.113.9",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil.example#localhost",
        "127.1",
        "ORDERS.example.com.",
        "orders.example.com:99999",
        "[::1",
        "localhost:",
    ]
    pages = [
        "",
        "http://localhost:3000",
        "https://app.example.com:8443",
        "null",
        "http://orders.example.com",
        "https://orders.example.com:443",
        "https://app.example.com:8443.evil.example",
        "http://localhost.evil.example",
        "https://app.example.com",
        "file://localhost",
        "http://user@localhost",
        "http://localhost/",
        "HTTP://[::1]",
    ]
    inputs = [f"{host}\n{pages[index % len(pages)]}" for index, host in enumerate(hosts)]
    inputs += [f"127.0.0.1\n{page}\nlocalhost" for page in pages]
    return [text.encode() for text in inputs]


def uri_templates() -> list[bytes]:
    """Return a template and a URI."""
    pairs = {
        "menu://categories/{category}": ["menu://categories/soups", "menu://categories/a%2Fb", "menu://categories/"],
        "file:///{+path}": ["file:///a/b.txt", "file:///../x", "file:///%2e%2e/x", "file:///a%00", "file:///C:/x"],
        "a://{x*}/{y}": ["a://1/2/3", "a://1//2", "a://%2F/b", "a://..%2f/x"],
        "a://{x}-{y}.{z*}/end": ["a://1-2.3/4/end", "a://--.../end", "a://1-2.a%2Db/end"],
        "a://b{?q,r*}": ["a://b", "a://b?q=1&r=2&r=3", "a://b?q=1&q=2", "a://b?q", "a://b?x=1", "a://b?r=a+b&r=%2B"],
        "a://{x}4{y}": ["a://%41x", "a://14%342"],
        "a://b/c": ["a://b/c", "a://b/c/d"],
    }
    bad = [
        "a://{x}{y}",
        "a://{x}/{x}",
        "{x}",
        "a://{?q}/x",
        "a://{x",
        "a://{#x}",
        "a://{x,y}",
        "a://{x:3}",
        "a://{?q}{?r}",
    ]
    return [f"{template}\n{uri}".encode() for template, uris in pairs.items() for uri in uris] + [
        f"{template}\na://1".encode() for template in bad
    ]


def cursors() -> list[bytes]:
    """Return cursors and their contents."""
    inside = [
        "tools 2 add",
        "prompts 10 greet",
        "resources 1 shop://a b",
        "tools 0 add",
        "tools -1 add",
        "tools 01 add",
        "tools 1",
        "tools  1 a",
        "tools \u0661 a",
        "tools 1234567890 a",
        "tools 1 \u00e9",
        "",
        "tools 1_0 a",
        "tools +1 a",
    ]
    encoded = [base64.urlsafe_b64encode(text.encode()) for text in inside]
    return (
        [text.encode() for text in inside]
        + encoded
        + [encoded[0][:-1], encoded[0] + b"=", b" " + encoded[0], b"\xff\xfe"]
    )


def sealed() -> list[bytes]:
    """Return the number of a token, a change, a position and a text."""
    texts = ["", ".", "1.e30.AAAA", "A", "=", " ", "\u00e9", "2", "e30", "AAAA.BBBB"]
    return [
        bytes([number, change, 0, 9 * change]) + texts[(number + change) % len(texts)].encode()
        for number in range(8)
        for change in range(9)
    ] + [text.encode() for text in texts]


def tokens() -> list[bytes]:
    """Return headers and payloads of tokens, and Authorization headers."""
    good = {
        "iss": "https://login.example.com",
        "aud": "https://orders.example.com/mcp",
        "sub": "alice",
        "exp": 1_900_000_000,
    }
    header = {"alg": "HS256", "typ": "at+jwt", "kid": "one"}
    changes: list[dict[str, Any]] = [
        {},
        {"aud": ["x", good["aud"]]},
        {"aud": [1]},
        {"iss": [good["iss"]]},
        {"exp": "1"},
        {"exp": True},
        {"exp": 1e300},
        {"exp": 1_700_000_000},
        {"nbf": 1_850_000_000},
        {"iat": -1},
        {"scope": "a b"},
        {"scp": ["a", 1]},
        {"roles": ["r"]},
        {"sub": ""},
        {"nonce": "n"},
        {"token_use": "id"},
        {"client_id": "app", "name": "\u00e9"},
        {"azp": 1},
    ]
    inputs = [f"{json.dumps(header)}\n{json.dumps({**good, **other})}" for other in changes]
    heads: list[dict[str, Any]] = [
        {"alg": "none"},
        {"alg": "RS256"},
        {"alg": 1},
        {"crit": ["b64"]},
        {"typ": "JWT"},
        {"typ": "application/AT+jwt"},
        {"kid": "two"},
        {"kid": 1},
        {"jwk": {"kty": "oct", "k": "AA"}},
    ]
    inputs += [f"{json.dumps({**header, **head})}\n{json.dumps(good)}" for head in heads]
    inputs += [
        "{}\n{}",
        "{\n",
        '{"alg":"HS256","alg":"none"}\n{}',
        "Bearer",
        "bearer a.b.c",
        "Bearer e30.e30.",
        "Basic eA==",
    ]
    inputs += [
        "e30.e30.AA",
        "eyJhbGciOiJIUzI1NiJ9.e30.AA",
        "eyJhbGciOiJIUzI1NiJ9..AB",
        "A.A.A",
        "Bearer  x",
        "Bearer x y",
    ]
    claims = [{"typ": "sub", "val": "a"}, {"typ": "roles", "val": "r"}]
    inputs += [
        f" {json.dumps({'auth_typ': 'aad', 'claims': claims, 'name_typ': 'name', 'role_typ': 'roles'})}",
        " []",
        " null",
    ]
    return [text.encode() for text in inputs]


def _request(line: str, headers: dict[str, str], body: object = "") -> bytes:
    lines = [line, *(f"{name}: {value}" for name, value in {"host": "127.0.0.1:8000", **headers}.items())]
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    return ("\n".join(lines) + "\n\n" + text).encode()


def _post(method: str, params: object, session: str = "@INIT@", **headers: str) -> bytes:
    """Return a POST of the handshake era."""
    path = "/guarded" if session == "@BOB@" else "/mcp"
    fields = {"content-type": "application/json", "accept": _BOTH, "mcp-session-id": session}
    fields.update({name.replace("_", "-"): value for name, value in headers.items()})
    return _request(f"POST {path}", fields, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def _now(method: str, params: dict[str, Any], name: str | None = None, **headers: str) -> bytes:
    """Return a POST of the per-request era."""
    fields = {
        "content-type": "application/json",
        "accept": _BOTH,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
    }
    fields.update({name.replace("_", "-"): value for name, value in headers.items()})
    if name is not None:
        fields["mcp-name"] = name
    body = {"jsonrpc": "2.0", "id": "a", "method": method, "params": {"_meta": _META, **params}}
    return _request("POST /mcp", fields, body)


_ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
_ORDER = {
    "name": "order",
    "arguments": {"order": {"item": "soup", "day": "2026-07-28", "notes": {"a": [1.5]}}, "way": "van"},
}
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "n", "version": "1"},
}
_COMPLETE = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "A"}}
_TEMPLATE = {
    "ref": {"type": "ref/resource", "uri": "shop://files/{path*}/raw"},
    "argument": {"name": "path", "value": "a"},
}


def _handshake_requests() -> list[bytes]:
    requests: list[tuple[str, object]] = [
        ("initialize", _INITIALIZE),
        ("initialize", {}),
        ("ping", {}),
        ("tools/list", {}),
        ("tools/list", {"cursor": "dG9vbHMgMiBh"}),
        ("tools/call", _ADD),
        ("tools/call", {"name": "add", "arguments": {"a": "x"}}),
        ("tools/call", {"name": "nothing"}),
        ("tools/call", _ORDER),
        ("tools/call", {"name": "ask", "arguments": {}}),
        ("tools/call", {"name": 1}),
        ("unheard/of", {}),
        ("tools/call", {"name": "report", "arguments": {"steps": 2}, "_meta": {"progressToken": "t"}}),
        ("tools/call", {"name": "region", "arguments": {"region": "eu"}}),
        ("tools/call", {"name": "cancel", "arguments": {"number": 1}}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": "shop://today"}),
        ("resources/read", {"uri": "shop://orders/7?lang=de&tag=a&tag=b"}),
        ("resources/read", {"uri": "shop://files/a/b/raw"}),
        ("resources/read", {"uri": "shop://files/../raw"}),
        ("resources/read", {"uri": "nothing://"}),
        ("resources/read", {}),
        ("resources/subscribe", {"uri": "shop://today"}),
        ("resources/unsubscribe", {"uri": "shop://today"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "greet", "arguments": {"who": "A", "way": "long"}}),
        ("prompts/get", {"name": "plan", "arguments": {"day": "2026-07-28", "people": "3"}}),
        ("prompts/get", {"name": "greet"}),
        ("completion/complete", _COMPLETE),
        ("completion/complete", _TEMPLATE),
        ("logging/setLevel", {"level": "debug"}),
        ("server/discover", {}),
        ("tools/call", []),
    ]
    inputs = [_post(method, params) for method, params in requests]
    inputs += [_post(method, params, "@BOB@", authorization="Bearer @KEY@") for method, params in requests[1::2]]
    return inputs


def _per_request_requests() -> list[bytes]:
    state = {
        "_meta": _ASKABLE,
        "requestState": "@STATE@",
        "inputResponses": {"name": {"action": "accept", "content": {"name": "B"}}},
    }
    return [
        _now("server/discover", {}),
        _now("tools/list", {}),
        _now("tools/call", _ADD, "add"),
        _now("tools/call", _ADD, "=?base64?YWRk?="),
        _now("tools/call", _ADD, "sub"),
        _now("tools/call", {"name": "ask", "arguments": {}, "_meta": _ASKABLE}, "ask"),
        _now("tools/call", {"name": "ask", "arguments": {"a": 20, "b": 22}, **state}, "ask"),
        _now("tools/call", {"name": "ask", "arguments": {"a": 1}, **state}, "ask"),
        _now(
            "tools/call",
            {"name": "region", "arguments": {"region": "eu", "count": 2}},
            "region",
            mcp_param_region="eu",
            mcp_param_count="2",
        ),
        _now(
            "tools/call",
            {"name": "report", "arguments": {"steps": 1}, "_meta": {**_META, "progressToken": 1}},
            "report",
        ),
        _now("resources/read", {"uri": "shop://orders/7"}, "shop://orders/7"),
        _now("prompts/get", {"name": "greet", "arguments": {"who": "A"}}, "greet"),
        _now("completion/complete", _COMPLETE),
        _now("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
        _now("tools/list", {"_meta": {}}),
        _now("tools/list", {"_meta": {**_META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}),
    ]


def http_endpoint() -> list[bytes]:
    """Return HTTP requests."""
    json_type = {"content-type": "application/json"}
    session = {**json_type, "mcp-session-id": "@BATCH@"}
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": _ADD},
    ]
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = {"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "decline"}}
    preflight = {"origin": "https://app.example.com", "access-control-request-method": "POST"}
    bob = {**json_type, "authorization": "Bearer @KEY@", "mcp-session-id": "@BOB@"}
    return [
        *_handshake_requests(),
        *_per_request_requests(),
        *(
            _request("POST /mcp", session, body)
            for body in (batch, [], [1], notice, cancel, answer, [notice], "{", "", "1", "null")
        ),
        _request("POST /mcp", json_type, notice),
        _request("POST /mcp", {**session, "mcp-protocol-version": "2025-03-26"}, batch[0]),
        _request("POST /mcp", {**session, "mcp-protocol-version": "1999-01-01"}, batch[0]),
        _request("POST /mcp", {**session, "accept": "text/event-stream"}, batch[1]),
        _request("POST /mcp", {**session, "content-encoding": "gzip"}, batch[0]),
        _request("POST /mcp", {**session, "content-type": "text/plain"}, batch[0]),
        _request("POST /mcp", {**session, "content-length": "99999999"}, batch[0]),
        _request(*_EVENTS),
        _request("GET /mcp", {"accept": "text/event-stream", "mcp-session-id": "@INIT@"}),
        _request("GET /mcp", {"accept": "text/event-stream", "mcp-session-id": "@INIT@", "last-event-id": "a-1"}),
        _request("GET /mcp", {"mcp-session-id": "@INIT@"}),
        _request("DELETE /mcp", {"mcp-session-id": "@INIT@"}),
        _request("DELETE /guarded", bob),
        _request("GET /sse", {}),
        _request("POST /sse?session_id=a", json_type, batch[0]),
        _request("OPTIONS /guarded", preflight),
        _request("PUT /mcp", {}),
        _request("GET /.well-known/oauth-protected-resource/guarded", {}),
        _request("POST /guarded", {**bob, "authorization": "Bearer e30.e30.AA"}, batch[0]),
        _request("POST /guarded", {**bob, "authorization": "Bearer"}, batch[0]),
        _request("POST /guarded", {**json_type, "x-ms-client-principal": "eyJjbGFpbXMiOltdfQ=="}, batch[0]),
        _request("POST /mcp", {**session, "origin": "https://evil.example"}, batch[0]),
        _request("POST /mcp", {**session, "host": "evil.example"}, batch[0]),
    ]


def http_bytes() -> list[bytes]:
    """Return what clients send on a connection; the first byte says how it comes in."""
    get = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    post = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"
    chunked = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    upgrade = b"POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: %d\r\n\r\n%b"
    connections = [
        get,
        get * 50,
        post * 3,
        post.replace(b"/ ", b"/early ") * 2 + get,
        get.replace(b"/ ", b"/wait ") + get * 10,
        get.replace(b"/ ", b"/stream ") * 40,
        get.replace(b"/ ", b"/stream ").replace(b"1.1", b"1.0"),
        get.replace(b"GET", b"HEAD") + get,
        get.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + get,
        post.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"),
        chunked + b"5\r\nhello\r\n0\r\n\r\n" + get,
        chunked + b"5\r\nhello\r\n0\r\nx-trailer: 1\r\nhost: b\r\n\r\n" + get,
        chunked + b"1\r\nx\r\n" * 300 + b"0\r\n\r\n",
        chunked + b"1;a=b\r\nx\r\n0;c\r\n\r\n",
        chunked + b"0\r\n" + b"x-trailer: 1\r\n" * 150,
        chunked + b"1;" + b"e" * 2000,
        chunked.replace(b"/ ", b"/early ") + b"5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n" + get,
        upgrade % (len(get), get) + get,
        b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n" + get,
        b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 600,
        b"GET /" + b"x" * 2000,
        b"\r\n" * 600,
        post + b"\x00\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3000\r\n\r\n" + b"x" * 3000 + get,
    ]
    direct = post.replace(b"/ ", b"/direct ")
    without_asgi = [
        direct + get + direct,
        direct.replace(b"5\r\n\r\nhello", b"6\r\n\r\nstream") * 2,
        direct.replace(b"5\r\n\r\nhello", b"4\r\n\r\nwait") + direct,
        direct.replace(b"hello", b"fault") + direct,
        direct.replace(b"5\r\n\r\nhello", b"3000\r\n\r\n" + b"x" * 3000) + direct,
        direct.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n") + direct,
        chunked.replace(b"/ ", b"/direct ") + b"5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n" + direct,
        direct + b"\r\n" + direct + b"\x00",
    ]
    return [bytes([number % 16]) + data for number, data in enumerate([*connections * 2, *without_asgi * 2])]


def main() -> None:
    """Write all of them anew."""
    for make in (codec, header_values, origins, uri_templates, cursors, sealed, tokens, http_endpoint, http_bytes):
        folder = FOLDER / make.__name__
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, data in enumerate(make()):
            (folder / f"{number:03}").write_bytes(data)


if __name__ == "__main__":
    main()
