"""What is said of a request before its body is read."""

from __future__ import annotations

from funcmcp.testing import MemoryRequest
from funcmcp.transports.http.admission.header_checks import Entry, Gate
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.options import HTTPOptions
from tests.server.parts import server

USUAL = {"host": "127.0.0.1", "content-type": "application/json"}


def gate(**options: object) -> Gate:
    return Gate(server(), HTTPOptions(**options), path="/mcp", listens=False)  # type: ignore[arg-type]


def request(headers: list[tuple[str, str]], method: str = "POST", path: str = "/mcp") -> MemoryRequest:
    lines = [(name.encode(), value.encode()) for name, value in headers]
    return MemoryRequest(method, path, lines, b"")


def test_a_verdict_is_kept_for_the_same_headers_only() -> None:
    made = gate()
    first = made.admit(request([*USUAL.items(), ("mcp-protocol-version", "2026-07-28")]))
    assert isinstance(first, Entry)
    assert (first.version, first.per_request, first.known_version) == ("2026-07-28", True, True)
    assert made.admit(request([*USUAL.items(), ("mcp-protocol-version", "2026-07-28")])) is first
    other = made.admit(request([*USUAL.items(), ("mcp-protocol-version", "1999-01-01")]))
    assert isinstance(other, Entry)
    assert (other.version, other.per_request, other.known_version) == ("1999-01-01", True, False)


def test_a_request_that_passed_does_not_open_the_gate_for_others() -> None:
    made = gate(allowed_origins=["*"])
    assert isinstance(made.admit(request([*USUAL.items(), ("origin", "http://a, http://a")])), Entry)
    for changed in (
        request([*USUAL.items(), ("origin", "http://a"), ("origin", "http://a")]),
        request([("host", "evil.example"), ("content-type", "application/json")]),
        request([*USUAL.items()], path="/other"),
        request([*USUAL.items()], method="PUT"),
        request([*USUAL.items(), ("content-encoding", "gzip")]),
        request([*USUAL.items(), ("accept", "text/html")]),
        request([*USUAL.items(), ("content-length", "99999999")]),
    ):
        verdict = made.admit(changed)
        assert isinstance(verdict, HttpResponse)
        assert verdict.status >= 400


def test_many_different_headers_are_all_judged_and_take_bounded_room() -> None:
    made = gate()
    for port in range(1, 600):
        assert isinstance(
            made.admit(request([("host", f"localhost:{port}"), ("content-type", "application/json")])), Entry
        )
        evil = made.admit(request([("host", f"evil.example:{port}"), ("content-type", "application/json")]))
        assert isinstance(evil, HttpResponse)
    assert len(made._passed) <= 256
