"""Access tokens as verifiers of FastMCP and the official SDK return them, without an import of any framework."""

from __future__ import annotations

from typing import Any

NOW = 1_800_000_000.5
"""The time of the servers, in seconds since 1970."""

RESOURCE = "https://api.example.com/mcp"
REQUIRED_SCOPES = ["read", "write"]
_SECOND = int(NOW)
_VALID: dict[str, Any] = {"client_id": "app", "scopes": ["read", "write"], "resource": RESOURCE, "subject": "ann"}
_ABSENT = object()


def _with(**members: Any) -> dict[str, Any]:
    """Return the members of a valid token with some of them replaced or removed."""
    return {name: value for name, value in {**_VALID, **members}.items() if value is not _ABSENT}


CASES: dict[str, dict[str, Any]] = {
    "valid": _VALID,
    "expiry-none": _with(expires_at=None),
    "expiry-future": _with(expires_at=_SECOND + 3600),
    "expiry-past": _with(expires_at=_SECOND - 3600),
    "expiry-one-second-ago": _with(expires_at=_SECOND - 1),
    "expiry-this-second": _with(expires_at=_SECOND),
    "expiry-next-second": _with(expires_at=_SECOND + 1),
    "expiry-zero": _with(expires_at=0),
    "expiry-negative": _with(expires_at=-1),
    "expiry-huge": _with(expires_at=10**30),
    "expiry-milliseconds": _with(expires_at=_SECOND * 1000),
    "expiry-whole-float": _with(expires_at=_SECOND + 60.0),
    "expiry-past-whole-float": _with(expires_at=_SECOND - 60.0),
    "expiry-fraction": _with(expires_at=_SECOND + 60.5),
    "expiry-past-fraction": _with(expires_at=_SECOND - 60.5),
    "expiry-nan": _with(expires_at=float("nan")),
    "expiry-infinite": _with(expires_at=float("inf")),
    "expiry-minus-infinite": _with(expires_at=float("-inf")),
    "expiry-true": _with(expires_at=True),
    "expiry-false": _with(expires_at=False),
    "expiry-past-text": _with(expires_at=str(_SECOND - 60)),
    "expiry-future-text": _with(expires_at=str(_SECOND + 60)),
    "expiry-word": _with(expires_at="soon"),
    "expiry-list": _with(expires_at=[_SECOND + 60]),
    "resource-none": _with(resource=None),
    "resource-empty": _with(resource=""),
    "resource-other-host": _with(resource="https://evil.example.com/mcp"),
    "resource-other-path": _with(resource="https://api.example.com/other"),
    "resource-parent": _with(resource="https://api.example.com"),
    "resource-child": _with(resource="https://api.example.com/mcp/admin"),
    "resource-longer-host": _with(resource="https://api.example.com.evil.org/mcp"),
    "resource-other-scheme": _with(resource="http://api.example.com/mcp"),
    "resource-other-port": _with(resource="https://api.example.com:8443/mcp"),
    "resource-default-port": _with(resource="https://api.example.com:443/mcp"),
    "resource-upper-case-host": _with(resource="HTTPS://API.Example.COM/mcp"),
    "resource-upper-case-path": _with(resource="https://api.example.com/MCP"),
    "resource-slash": _with(resource="https://api.example.com/mcp/"),
    "resource-slashes": _with(resource="https://api.example.com/mcp//"),
    "resource-query": _with(resource="https://api.example.com/mcp?a=b"),
    "resource-fragment": _with(resource="https://api.example.com/mcp#a"),
    "resource-user": _with(resource="https://ann@api.example.com/mcp"),
    "resource-spaces": _with(resource=" https://api.example.com/mcp "),
    "resource-not-a-url": _with(resource="api.example.com/mcp"),
    "resource-list": _with(resource=[RESOURCE]),
    "scopes-missing": _with(scopes=[]),
    "scopes-partial": _with(scopes=["read"]),
    "scopes-superset": _with(scopes=["read", "write", "admin"]),
    "scopes-other-order": _with(scopes=["write", "read"]),
    "scopes-upper-case": _with(scopes=["READ", "WRITE"]),
    "scopes-one-text-in-a-list": _with(scopes=["read write"]),
    "scopes-text": _with(scopes="read write"),
    "scopes-tuple": _with(scopes=("read", "write")),
    "scopes-null": _with(scopes=None),
    "scopes-absent": _with(scopes=_ABSENT),
    "scopes-numbers": _with(scopes=[1, 2]),
    "subject-absent": _with(subject=_ABSENT),
    "subject-none": _with(subject=None),
    "subject-empty": _with(subject=""),
    "subject-number": _with(subject=5),
    "subject-true": _with(subject=True),
    "subject-list": _with(subject=["ann"]),
    "client-absent": _with(client_id=_ABSENT),
    "client-none": _with(client_id=None),
    "client-number": _with(client_id=5),
    "client-empty": _with(client_id=""),
    "claims-none": _with(claims=None),
    "claims-subject-number": _with(claims={"sub": 5}, subject=None),
    "claims-issuer-number": _with(claims={"iss": 5}),
    "claims-expiry-past": _with(claims={"exp": _SECOND - 60}),
    "claims-list": _with(claims=["sub"]),
}
"""The members of the token that a verifier returns, by the token that the client sends."""


def static_claims() -> dict[str, dict[str, Any]]:
    """Return the cases as the dict of a StaticTokenVerifier, which has the subject as ``sub``."""
    return {
        name: {"sub" if key == "subject" else key: value for key, value in members.items()}
        for name, members in CASES.items()
    }
