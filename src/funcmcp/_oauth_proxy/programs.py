"""Programs: clients that the operator names, with a secret or a key of their own, that act for no user.

How it works: a program sends its name and its secret to the token endpoint, and gets an access token whose subject is
its name. There is no refresh token: the program sends its secret again. Only digests of the secrets are stored. The
secret of a request is compared with all of them in constant time, and an address with too many failed requests gets no
further answer.

A program with a key sends a statement about itself in place of a secret (``private_key_jwt``). It is signed, for this
server, valid for an hour at most, and good for one request. It is checked last that it was not used before, so that
only the owner of the key can make the server remember statements.

Source: RFC 6749 sections 2.3.1 and 4.4; RFC 7523 sections 2.2 and 3; RFC 9068 section 2.2 (``sub`` is the client where
there is no user); the extension ``io.modelcontextprotocol/oauth-client-credentials`` (SEP-1046).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS, StaticKeys
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from funcmcp._auth.tokens.keys import KeySource
    from funcmcp._auth.tokens.proofs import UsedProofs

PROGRAM_GRANT: Final = "client_credentials"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
STATEMENT_ALGORITHMS: Final = ALGORITHMS - SHARED_SECRET_ALGORITHMS
LEEWAY: Final = 60
_MAX_SECONDS: Final = 3600
_MAX_ID: Final = 512
_MAX_TIME: Final = 2**53
# Not those of access tokens and of identity assertions, so that none of them stands for a statement.
_TYPES: Final = frozenset({None, "jwt", "client-authentication+jwt"})
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
    """A program that gets tokens of an `OAuthProxy` with a secret or a key, without a user.

    Attributes:
        secret: Its secret, or several, for example while one replaces another. A secret has at least 16 letters, digits
            and characters ``. _ ~ -``. ``"sha256:<64 hex digits>"`` is the digest of a secret, which keeps the secret
            itself out of the configuration.
        keys: The public keys of the program, `StaticKeys` or `JWKS`, with one of which it signs statements about itself
            (``private_key_jwt``). None: it has a secret.
        scopes: The scopes that it may have, at least one.
        roles: Its roles.

    Raises:
        TypeError: The scopes or the roles are one string, or a secret is None.
        ValueError: There is neither a secret nor a key, or no scope; a secret is not valid; or the keys are secrets.
    """

    secret: str | Sequence[str] = field(default=(), repr=False)
    keys: KeySource | None = field(default=None, repr=False)
    scopes: Sequence[str]
    roles: Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("scopes", "roles"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"Program.{name} is a list of strings, not one string.")
        if not self.scopes:
            raise ValueError("A Program needs at least one scope.")
        if self.secret is None:  # what os.environ.get returns
            raise TypeError("Program.secret is None. Set the environment variable that it comes from.")
        secrets = [self.secret] if isinstance(self.secret, str) else list(self.secret)
        if not secrets and self.keys is None:
            raise ValueError("A Program needs at least one secret, or keys.")
        if isinstance(self.keys, StaticKeys) and self.keys.secret:
            raise ValueError("Program.keys are public keys. A secret is Program.secret.")
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
        audiences: What statements of programs may be for: the issuer of the server, and its token endpoint.
        used: Remembers used statements.
        clock: Returns seconds since 1970.

    Attributes:
        has_keys: Whether a program has keys.

    Raises:
        TypeError: The programs are not a mapping, or a program is not a `Program`.
        ValueError: There are no programs, a name or a scope is not valid, or two programs have one secret.
    """

    def __init__(
        self,
        programs: Mapping[str, Program],
        scopes: Collection[str],
        *,
        audiences: Collection[str],
        used: UsedProofs,
        clock: Callable[[], float],
    ) -> None:
        if not isinstance(programs, Mapping):
            raise TypeError('OAuthProxy.programs is a dict with a Program for each name: {"reports": Program(...)}.')
        if not programs:
            raise ValueError("OAuthProxy.programs needs at least one program, or leave it out.")
        self._programs = dict(programs)
        self._audiences = frozenset(audiences)
        self._used = used
        self._clock = clock
        self._digests: list[tuple[bytes, str]] = []
        for name, program in programs.items():
            _check(name, program, scopes)
            self._digests += [(digest, name) for digest in program.digests]
        self.has_keys: bool = any(program.keys is not None for program in programs.values())
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

    async def read_statement(self, text: str, client_id: str | None) -> tuple[str, Program]:
        """Return the name and the program that has signed a statement, which is used up.

        Args:
            text: The statement.
            client_id: The client id of the request; None without one.

        Raises:
            TokenError: The statement is not valid, or was used before.
            StoreUnavailableError: It is not known whether the statement was used before.
        """
        signed = read(text)
        if signed.algorithm not in STATEMENT_ALGORITHMS or signed.type not in _TYPES:
            raise TokenError("The statement of the client has another algorithm or type than is accepted.")
        claims = read_object(signed.payload, "payload")
        name = claims.get("sub")
        program = self._programs.get(name) if isinstance(name, str) else None
        if program is None or program.keys is None or claims.get("iss") != name or client_id not in {None, name}:
            raise TokenError("The statement is not that of a program with a key.")
        if not _is_for(claims, self._audiences):
            raise TokenError("The statement is for another server.")
        end, statement_id = _end_of(claims, self._clock()), _id_of(claims)
        if not any(key.verifies(signed) for key in await program.keys.find(signed)):
            raise TokenError("The signature of the statement is invalid.")
        if not await self._used.use_once(f"program {name} {statement_id}", f"program {name}", end):
            raise TokenError("The statement was used before. Each request needs a new one.")
        return claims["sub"], program


def _is_for(claims: Mapping[str, Any], audiences: Collection[str]) -> bool:
    """Return whether ``aud`` is one of the audiences. More than one would let another server use the statement here."""
    audience = claims.get("aud")
    names = audience if isinstance(audience, list) else [audience]
    return len(names) == 1 and isinstance(names[0], str) and names[0].removesuffix("/") in audiences


def _id_of(claims: Mapping[str, Any]) -> str:
    """Return the id of a statement; raise TokenError if it has none that can be remembered."""
    statement_id = claims.get("jti")
    if not isinstance(statement_id, str) or not 0 < len(statement_id) <= _MAX_ID:
        raise TokenError(f"The statement needs an id (jti) of at most {_MAX_ID} characters.")
    return statement_id


def _end_of(claims: Mapping[str, Any], now: float) -> float:
    """Return when a statement ceases to be valid; raise TokenError if it is not valid now."""
    end, start = claims.get("exp"), claims.get("nbf", claims.get("iat", now))
    if not _is_time(end) or not _is_time(start):
        raise TokenError("The statement has no expiry, or a time in it is not a number.")
    if not now - LEEWAY < end <= now + _MAX_SECONDS + LEEWAY or start > now + LEEWAY:
        raise TokenError(f"The statement has expired, is not valid yet, or is valid for more than {_MAX_SECONDS} s.")
    return float(end) + LEEWAY


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _MAX_TIME


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
