"""Options of a server that is a client of an authorization server: its credential, and parameters of its requests.

Source: RFC 6749 sections 2.3 and 4.1.1, RFC 7523 section 2.2 (``private_key_jwt``), OpenID Connect Core 1.0 section 9
(``client_secret_jwt``).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, TypeAlias

MakeAssertion: TypeAlias = Callable[[], str | Awaitable[str]]
"""A function that returns a signed assertion for one request, in place of a secret. It may be async."""

AuthMethod: TypeAlias = Literal["client_secret_basic", "client_secret_post", "client_secret_jwt"]
"""How a secret is sent."""

METHODS: Final = ("client_secret_basic", "client_secret_post", "client_secret_jwt")
"""All methods. Of those that a provider supports, the server uses the first."""

RESERVED: Final = frozenset(
    {
        "client_id", "code_challenge", "code_challenge_method", "nonce", "redirect_uri", "request", "request_uri",
        "response_mode", "response_type", "scope", "state",
    }
)  # fmt: skip
"""Parameters of the authorization request that belong to the server."""


def checked_parameters(
    option: str, parameters: Mapping[str, str] | None, reserved: frozenset[str] = RESERVED
) -> dict[str, str]:
    """Return the parameters of an option; raise ValueError if one of them belongs to the server."""
    taken = reserved.intersection(parameters or {})
    if taken:
        raise ValueError(f"{option} can't contain {', '.join(sorted(taken))}: the server sends its own value.")
    return dict(parameters or {})


async def made_assertion(make: MakeAssertion) -> str:
    """Return a signed assertion for one request."""
    assertion = make()
    return await assertion if inspect.isawaitable(assertion) else assertion
