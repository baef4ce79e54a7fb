"""Checks of a request before its body is read."""

from __future__ import annotations

from typing import Any

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.endpoints.streamable_headers import CheckedHeaders, StreamableHeaders
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.options import HTTPOptions
from funcmcp.testing import MemoryRequest
from tests.server.parts import server

USUAL = {"host": "127.0.0.1", "content-type": "application/json"}


def admission(**options: object) -> Admission[CheckedHeaders]:
    headers = StreamableHeaders(REVISIONS, "/mcp", SignedSessions(KeyRing()))
    return Admission(server(), HTTPOptions(**options), HeaderCheck(headers.examine, headers.FIELDS), None)  # type: ignore[arg-type]


def request(headers: list[tuple[str, str]], method: str = "POST", path: str = "/mcp") -> MemoryRequest:
    lines = [(name.encode(), value.encode()) for name, value in headers]
    return MemoryRequest(method, path, lines, b"")


async def test_a_result_is_that_of_the_headers() -> None:
    made = admission()
    first = await made.admit(request([*USUAL.items(), ("mcp-protocol-version", "2026-07-28")]))
    assert isinstance(first, CheckedHeaders)
    assert (first.version, first.per_request, first.is_supported) == ("2026-07-28", True, True)
    other = await made.admit(request([*USUAL.items(), ("mcp-protocol-version", "1999-01-01")]))
    assert isinstance(other, CheckedHeaders)
    assert (other.version, other.per_request, other.is_supported) == ("1999-01-01", True, False)


async def test_a_request_that_passed_does_not_let_others_pass() -> None:
    made = admission(allowed_origins=["*"])
    assert isinstance(await made.admit(request([*USUAL.items(), ("origin", "http://a, http://a")])), CheckedHeaders)
    for changed in (
        request([*USUAL.items(), ("origin", "http://a"), ("origin", "http://a")]),
        request([("host", "evil.example"), ("content-type", "application/json")]),
        request([*USUAL.items()], path="/other"),
        request([*USUAL.items()], method="PUT"),
        request([*USUAL.items(), ("content-encoding", "gzip")]),
        request([*USUAL.items(), ("accept", "text/html")]),
        request([*USUAL.items(), ("content-length", "99999999")]),
    ):
        result = await made.admit(changed)
        assert isinstance(result, HttpResponse)
        assert result.status >= 400


async def test_many_different_headers_are_all_checked() -> None:
    made = admission()
    for port in range(1, 600):
        assert isinstance(
            await made.admit(request([("host", f"localhost:{port}"), ("content-type", "application/json")])),
            CheckedHeaders,
        )
        evil = await made.admit(request([("host", f"evil.example:{port}"), ("content-type", "application/json")]))
        assert isinstance(evil, HttpResponse)


async def test_a_repeated_header_does_not_let_two_hosts_or_origins_pass() -> None:
    made = admission(allowed_hosts=["*"], allowed_origins=["*"])
    joined = [("host", "a, a"), ("origin", "b, b"), ("content-type", "application/json")]
    assert isinstance(await made.admit(request([*joined, ("x", "1"), ("x", "2")])), CheckedHeaders)
    for repeated in ("host", "origin"):
        lines = [line for line in joined if line[0] != repeated]
        result = await made.admit(request([*lines, (repeated, "a"), (repeated, "a")]))
        assert isinstance(result, HttpResponse)
        assert result.status == 400


async def test_hosts_and_origins_that_are_too_long_for_a_name_are_refused() -> None:
    made = admission(allowed_hosts=["*"], allowed_origins=["*"])
    for name, status in (("host", 421), ("origin", 403)):
        result = await made.admit(request([*({**USUAL, name: "a" * 513}.items())]))
        assert isinstance(result, HttpResponse)
        assert result.status == status


class Recording(dict[bytes, bytes]):
    """Fields that record which of them are read by name."""

    def __init__(self, fields: dict[bytes, bytes]) -> None:
        super().__init__(fields)
        self.names: set[object] = set()

    def get(self, key: bytes, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)

    def __getitem__(self, key: bytes) -> bytes:
        self.names.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.names.add(key)
        return super().__contains__(key)


def test_the_checks_declare_the_fields_that_they_read() -> None:
    """Except for Content-Length: a body that has arrived is refused when it is read."""
    made = admission(allowed_origins=["http://a"], require_origin=False)
    values = {
        "host": ["127.0.0.1", "evil.example"],
        "origin": ["http://a", "http://b"],
        "accept": ["application/json", "text/html"],
        "content-type": ["application/json", "text/plain"],
        "content-encoding": ["identity", "gzip"],
        "content-length": ["2", "99999999"],
        "mcp-protocol-version": ["2026-07-28", "1999-01-01"],
        "mcp-session-id": ["a"],
        "x-forwarded-for": ["192.0.2.1"],
    }
    usual = {name: choices[0] for name, choices in values.items()}
    names: set[object] = set()
    for name, choices in values.items():
        for value in choices:
            checked = request([*{**usual, name: value}.items()])
            checked.fields = fields = Recording(checked.fields)
            made._check_header(checked)
            names |= fields.names
    assert names == {b"host", b"origin", b"content-length", *StreamableHeaders.FIELDS}
