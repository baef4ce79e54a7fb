"""Programs: clients that the operator names, with a secret of their own, that act for no user.

How it works: a program sends its name and its secret to the token endpoint, and gets an access token whose subject is
its name. There is no refresh token: the program sends its secret again. Only digests of the secrets are stored. The
secret of a request is compared with all of them in constant time, and an address with too many failed requests gets no
further answer.

Source: RFC 6749 sections 2.3.1 and 4.4; RFC 9068 section 2.2 (``sub`` is the client where there is no user); the
extension ``io.modelcontextprotocol/oauth-client-credentials`` (SEP-1046).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

GRANT_TYPE: Final = "client_credentials"
_MIN_SECRET: Final = 16
_DIGEST_PREFIX: Final = "sha256:"
# Unreserved characters are the same whether a client percent-encodes them for HTTP Basic, as RFC 6749 wants it, or not.
_SECRET: Final = re.compile(r"[A-Za-z0-9._~-]+")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
# The id of a client that registers begins with a digit, or is a URL.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that gets tokens of an `OAuthProxy` with a secret, without a user.

    Attributes:
        secret: Its secret, or several, for example while one replaces another. A secret has at least 16 letters, digits
            and characters ``. _ ~ -``. ``"sha256:<64 hex digits>"`` is the digest of a secret, which keeps the secret
            itself out of the configuration.
        scopes: The scopes that it may have, at least one.
        roles: Its roles.

    Raises:
        TypeError: The scopes or the roles are one string.
        ValueError: There is no secret, or no scope, or a secret is not valid.
    """

    secret: str | Sequence[str] = field(repr=False)
    scopes: Sequence[str]
    roles: Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("scopes", "roles"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"Program.{name} is a list of strings, not one string.")
        if not self.scopes:
            raise ValueError("A Program needs at least one scope.")
        secrets = [self.secret] if isinstance(self.secret, str) else list(self.secret)
        if not secrets:
            raise ValueError("A Program needs at least one secret.")
        for secret in secrets:
            _digest(secret)

    @property
    def digests(self) -> list[bytes]:
        """The SHA-256 digests of the secrets."""
        return [_digest(secret) for secret in ([self.secret] if isinstance(self.secret, str) else self.secret)]


class Programs:
    """The programs of a proxy.

    Args:
        programs: The programs by name.
        scopes: The scopes of the server.

    Raises:
        TypeError: A program is not a `Program`.
        ValueError: There are no programs, a name or a scope is not valid, or two programs have one secret.
    """

    def __init__(self, programs: Mapping[str, Program], scopes: Collection[str]) -> None:
        if not programs:
            raise ValueError("OAuthProxy.programs needs at least one program, or leave it out.")
        self._programs = dict(programs)
        self._digests: list[tuple[bytes, str]] = []
        for name, program in programs.items():
            _check(name, program, scopes)
            self._digests += [(digest, name) for digest in program.digests]
        if len({digest for digest, _ in self._digests}) < len(self._digests):
            raise ValueError("Each secret in OAuthProxy.programs must be different from all others.")

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def authenticate(self, name: str, secret: str) -> Program | None:
        """Return the program with a name and a secret; None for another secret or an unknown name."""
        digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        is_right = False
        # The loop has no early exit: the time must not depend on the secret.
        for expected, owner in self._digests:
            is_equal = hmac.compare_digest(expected, digest)
            is_right = is_right or (is_equal and owner == name)
        return self._programs[name] if is_right else None


def is_name(client_id: str) -> bool:
    """Return whether a client id has the form of a program's name, which no client that registers has."""
    return _NAME.fullmatch(client_id) is not None


def _check(name: str, program: Program, scopes: Collection[str]) -> None:
    """Raise TypeError or ValueError if a program can't be one of a server with these scopes."""
    if not isinstance(program, Program):
        raise TypeError(f"OAuthProxy.programs[{name!r}] must be a Program; got {type(program).__name__}.")
    if not is_name(name):
        raise ValueError(
            f"{name!r} is not the name of a program. A name begins with a letter, and has at most 100 letters, digits "
            "and characters . _ -"
        )
    unknown = set(program.scopes) - set(scopes)
    if unknown:
        raise ValueError(f"The program {name!r} has scopes that the server does not have: {sorted(unknown)}.")


def _digest(secret: str) -> bytes:
    """Return the digest of a secret in the configuration; raise ValueError if it is not valid."""
    if secret.startswith(_DIGEST_PREFIX):
        digest = secret.removeprefix(_DIGEST_PREFIX).lower()
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"The digest of a Program's secret is not {_DIGEST_PREFIX}<64 hex digits>.")
        return bytes.fromhex(digest)
    if len(secret) < _MIN_SECRET or not _SECRET.fullmatch(secret):
        raise ValueError(
            f"A Program's secret needs at least {_MIN_SECRET} characters: letters, digits and . _ ~ - only. "
            'python -c "import secrets; print(secrets.token_urlsafe(32))" makes one.'
        )
    return hashlib.sha256(secret.encode("ascii")).digest()
