"""Checks of a request before its body is read."""

from __future__ import annotations

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.limits import Limits
from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._transports.http.admission.header_checks import HeaderChecks
from funcmcp._transports.http.endpoints.streamable_headers import CheckedHeaders, StreamableHeaders
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.options import HTTPOptions
from funcmcp.testing import MemoryRequest

USUAL = {"host": "127.0.0.1", "content-type": "application/json"}


def header_checks(**options: object) -> HeaderChecks[CheckedHeaders]:
    headers = StreamableHeaders(REVISIONS, "/mcp", SignedSessions(KeyRing()))
    return HeaderChecks(HTTPOptions(**options), Limits(), headers.examine)  # type: ignore[arg-type]


def request(headers: list[tuple[str, str]], method: str = "POST", path: str = "/mcp") -> MemoryRequest:
    lines = [(name.encode(), value.encode()) for name, value in headers]
    return MemoryRequest(method, path, lines, b"")


def test_a_result_is_that_of_the_headers() -> None:
    made = header_checks()
    first = made.check(request([*USUAL.items(), ("mcp-protocol-version", "2026-07-28")]))
    assert isinstance(first, CheckedHeaders)
    assert (first.version, first.per_request, first.is_supported) == ("2026-07-28", True, True)
    other = made.check(request([*USUAL.items(), ("mcp-protocol-version", "1999-01-01")]))
    assert isinstance(other, CheckedHeaders)
    assert (other.version, other.per_request, other.is_supported) == ("1999-01-01", True, False)


def test_a_request_that_passed_does_not_let_others_pass() -> None:
    made = header_checks(allowed_origins=["*"])
    assert isinstance(made.check(request([*USUAL.items(), ("origin", "http://a, http://a")])), CheckedHeaders)
    for changed in (
        request([*USUAL.items(), ("origin", "http://a"), ("origin", "http://a")]),
        request([("host", "evil.example"), ("content-type", "application/json")]),
        request([*USUAL.items()], path="/other"),
        request([*USUAL.items()], method="PUT"),
        request([*USUAL.items(), ("content-encoding", "gzip")]),
        request([*USUAL.items(), ("accept", "text/html")]),
        request([*USUAL.items(), ("content-length", "99999999")]),
    ):
        result = made.check(changed)
        assert isinstance(result, HttpResponse)
        assert result.status >= 400


def test_many_different_headers_are_all_checked() -> None:
    made = header_checks()
    for port in range(1, 600):
        assert isinstance(
            made.check(request([("host", f"localhost:{port}"), ("content-type", "application/json")])), CheckedHeaders
        )
        evil = made.check(request([("host", f"evil.example:{port}"), ("content-type", "application/json")]))
        assert isinstance(evil, HttpResponse)


def test_a_repeated_header_does_not_let_two_hosts_or_origins_pass() -> None:
    made = header_checks(allowed_hosts=["*"], allowed_origins=["*"])
    joined = [("host", "a, a"), ("origin", "b, b"), ("content-type", "application/json")]
    assert isinstance(made.check(request([*joined, ("x", "1"), ("x", "2")])), CheckedHeaders)
    for repeated in ("host", "origin"):
        lines = [line for line in joined if line[0] != repeated]
        result = made.check(request([*lines, (repeated, "a"), (repeated, "a")]))
        assert isinstance(result, HttpResponse)
        assert result.status == 400


def test_hosts_and_origins_that_are_too_long_for_a_name_are_refused() -> None:
    made = header_checks(allowed_hosts=["*"], allowed_origins=["*"])
    for name, status in (("host", 421), ("origin", 403)):
        result = made.check(request([*({**USUAL, name: "a" * 513}.items())]))
        assert isinstance(result, HttpResponse)
        assert result.status == status
