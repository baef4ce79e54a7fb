"""What a sign-in carries from step to step: concealed texts in place of a store.

How it works: a `Flow` begins with the client's authorization request. It is concealed three times, each time for
another purpose, so that none of the texts can stand for another one:

- as the *transaction* in the form of the consent page,
- as the *state* that the browser takes to the identity provider and back, after the user has consented,
- as the *code* for the client, together with the code of the identity provider.

Each is a record with a version (`funcmcp._state.records`): a process of another version continues the sign-in, and
keeps the members that it does not know. Version 0.1 wrote lists, which are still read.

A flow has a random secret, which never leaves the concealed texts. The values that bind the steps to the browser and to
the identity provider are derived from it: the token of the form, the values of the two cookies, the PKCE verifier and
the nonce. So a key of the server can be replaced, or another instance continue, at each step.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from funcmcp._state.records import VERSION, are_texts, to_record, value_of, with_key
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from funcmcp._state.records import Extra, Value
    from funcmcp._state.seal import KeyRing

FLOW_SECONDS = 600
"""Seconds that a user has for the consent page, and again for signing in."""

CODE_SECONDS = 60

ANY_KEY = ""
"""In place of the thumbprint of a key: a proof of any key is needed. Older versions refuse it, as no key has it."""

_MAX_TOKEN = 16 * 1024
_FLOW_OF_0_1 = ("secret", "client", "redirect_uri", "state", "scopes", "challenge", "refreshes", "began", "code")
"""The members of a record of version 0.1, which was a list. Sign-ins of that version end after 90 days."""

_TRANSACTION, _STATE, _CODE = "oauth transaction", "oauth state", "oauth code"


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in.

    Attributes:
        secret: Random bytes, from which all values are derived that bind the steps to each other.
        client: The client's key.
        redirect_uri: Where the user returns to.
        state: The client's state; None without.
        scopes: The scopes that the client requests.
        challenge: The client's PKCE challenge (S256).
        refreshes: Whether the client gets refresh tokens.
        began: When the step began, in seconds since 1970.
        code: The code of the identity provider; "" before the callback.
        jkt: The thumbprint of the key to which the code is bound (``dpop_jkt``, RFC 9449 section 10); `ANY_KEY` if the
            client chooses the key later; None if it needs none.
        extra: Members of the record that this version does not know.
    """

    secret: bytes = field(repr=False)
    client: str
    redirect_uri: str
    state: str | None
    scopes: tuple[str, ...]
    challenge: str
    refreshes: bool
    began: int
    code: str = field(default="", repr=False)
    jkt: str | None = None
    extra: Extra = field(default_factory=dict)

    def value(self, name: str) -> str:
        """Return the secret value with a name: 43 characters that a header, a form and a URL can contain."""
        return base64url(hmac.digest(self.secret, name.encode(), hashlib.sha256))

    @property
    def mark(self) -> str:
        """What distinguishes the cookies of this flow from those of another one in the same browser."""
        return self.value("mark")[:8]


def new_secret() -> bytes:
    """Return the secret of a new flow."""
    return os.urandom(32)


def to_transaction(keys: KeyRing, flow: Flow) -> str:
    """Return a flow as the consent page carries it."""
    return keys.conceal(_TRANSACTION, _encoded(flow))


def of_transaction(keys: KeyRing, text: str, now: float) -> Flow | None:
    """Return the flow of a consent page; None if the text is not one of the server's, or has expired."""
    return _flow(keys, _TRANSACTION, text, now, FLOW_SECONDS)


def to_state(keys: KeyRing, flow: Flow, now: float) -> str:
    """Return a flow as the browser carries it to the identity provider and back."""
    return keys.conceal(_STATE, _encoded(replace(flow, began=int(now))))


def of_state(keys: KeyRing, text: str, now: float) -> Flow | None:
    """Return the flow of a state; None if the text is not one of the server's, or has expired."""
    return _flow(keys, _STATE, text, now, FLOW_SECONDS)


def to_code(keys: KeyRing, flow: Flow, upstream_code: str, now: float) -> str:
    """Return the code for the client, which contains the code of the identity provider."""
    return keys.conceal(_CODE, _encoded(replace(flow, began=int(now), state=None, code=upstream_code)))


def sign_in_id(flow: Flow) -> str:
    """Return the id of the sign-in that the code of a flow begins: 256 bits that are in concealed texts only."""
    return flow.value(f"sign-in {flow.code}")


def of_code(keys: KeyRing, text: str, now: float) -> Flow | None:
    """Return the flow of a code; None if the text is not one of the server's, or has expired."""
    return _flow(keys, _CODE, text, now, CODE_SECONDS)


def _encoded(flow: Flow) -> bytes:
    members: dict[str, Any] = {
        "secret": base64url(flow.secret),
        "client": flow.client,
        "redirect_uri": flow.redirect_uri,
        "state": flow.state,
        "scopes": list(flow.scopes),
        "challenge": flow.challenge,
        "refreshes": flow.refreshes,
        "began": flow.began,
        "code": flow.code,
    }
    members, version = with_key(members, flow.jkt)
    return to_record(members, flow.extra, version)


def _flow(keys: KeyRing, purpose: str, text: str, now: float, seconds: int) -> Flow | None:
    payload = keys.reveal(purpose, text) if len(text) <= _MAX_TOKEN else None
    flow = _flow_of(value_of(payload))
    if flow is None or not -seconds < now - flow.began < seconds:
        return None
    return flow


def _flow_of(value: Value) -> Flow | None:
    """Return the flow in a record; None if this version can't read it."""
    match value:
        case [str(), str(), str(), str() | None, list(), str(), bool(), int(), str()]:  # of version 0.1
            members = dict(zip(_FLOW_OF_0_1, value, strict=True))
            return _flow_of({**members, "v": VERSION})
        case {"v": 2, "jkt": str(jkt), **unbound}:
            flow = _flow_of({str(name): member for name, member in unbound.items()} | {"v": VERSION})
            return None if flow is None else replace(flow, jkt=jkt)
        case {
            "v": 1,
            "secret": str(secret),
            "client": str(client),
            "redirect_uri": str(redirect_uri),
            "state": str() | None as state,
            "scopes": list(scopes),
            "challenge": str(challenge),
            "refreshes": bool(refreshes),
            "began": int(began),
            "code": str(code),
            **extra,
        } if are_texts(scopes):
            secret_bytes = _to_bytes(secret)
            if secret_bytes is not None:
                return Flow(
                    secret_bytes,
                    client,
                    redirect_uri,
                    state,
                    tuple(scopes),
                    challenge,
                    refreshes,
                    began,
                    code,
                    extra=extra,
                )
    return None


def challenge_of(verifier: str) -> str:
    """Return the challenge of a PKCE verifier (RFC 7636 section 4.2, S256)."""
    return base64url(hashlib.sha256(verifier.encode("ascii")).digest())


def _to_bytes(text: str) -> bytes | None:
    try:
        return binascii.a2b_base64(text.replace("-", "+").replace("_", "/") + "=")
    except ValueError:
        return None
