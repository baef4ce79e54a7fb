"""Credentials of programs: clients that get tokens without a user at a browser.

Source: RFC 6749 section 4.4 (client credentials); RFC 7523 (assertions, as a client's credential and as a grant); the
extensions ``io.modelcontextprotocol/oauth-client-credentials`` (SEP-1046), ``io.modelcontextprotocol/auth/wif``
(SEP-1933) and ``io.modelcontextprotocol/enterprise-managed-authorization`` (SEP-990).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from funcmcp._auth.basic import basic_of
from funcmcp._auth.urls import checked
from funcmcp._client.errors import SignInError
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._state.seal import base64url
from funcmcp._text.files import read_bytes

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

Signed: TypeAlias = Callable[[str], Awaitable[str] | str] | Callable[[], Awaitable[str] | str]
"""A function that returns a token of the platform, for an audience: the issuer of an authorization server. A function
without parameters knows the audience."""

TokenSource: TypeAlias = Path | Signed
"""Where a token of the platform comes from: a file that the platform renews, or a function."""

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SECONDS: Final = 60
"""Seconds for which an assertion is valid: it is made for each request."""

_MAX_TOKEN: Final = 64 * 1024
_ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA", "Ed25519"),
}
"""The algorithms of each kind of key, the one that is used by default first."""

_MIN_RSA_BITS: Final = 2048


@runtime_checkable
class ClientAssertion(Protocol):
    """A key that signs statements of a client about itself, such as `PrivateKeyJWT` and `ClientCertificate`."""

    def assertion(self, client_id: str, audience: str, now: float) -> str:
        """Return a statement for one request: that it comes from a client."""


Credential: TypeAlias = ClientAssertion | TokenSource
"""What proves that a request comes from a client without a secret: a key, or a token of the platform."""


@public("funcmcp.client")
class PrivateKeyJWT:
    """A private key as the credential of a client (``private_key_jwt``). The authorization server knows its public key.

    It needs ``pip install "funcmcp[client,auth]"``.

    Args:
        key: The key in PEM: RSA of at least 2048 bits, an elliptic curve (P-256, P-384, P-521) or Ed25519.
        password: The password of the key, if it has one.
        algorithm: The signature algorithm. None: RS256, ES256, ES384, ES512 or EdDSA, by the kind of the key.
        key_id: The name of the key (``kid``), if the authorization server has several keys of the client.
        audience: The ``aud`` of statements. None: the issuer of the authorization server.

    Attributes:
        audience: The ``aud`` of statements; None for the issuer.

    Raises:
        ValueError: The key can't be read, or does not fit the algorithm.
    """

    def __init__(
        self,
        key: str | bytes,
        *,
        password: str | bytes | None = None,
        algorithm: str | None = None,
        key_id: str | None = None,
        audience: str | None = None,
    ) -> None:
        self._key, algorithms = _private_key(_bytes(key), None if password is None else _bytes(password))
        if algorithm is not None and algorithm not in algorithms:
            raise ValueError(f"PrivateKeyJWT.algorithm must be {' or '.join(algorithms)} for this key.")
        self._algorithm = algorithm or algorithms[0]
        self._key_id = key_id
        self.audience: str | None = audience

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        password: str | bytes | None = None,
        algorithm: str | None = None,
        key_id: str | None = None,
        audience: str | None = None,
    ) -> PrivateKeyJWT:
        """Return the key in a ``.pem`` file. Arguments are those of the class; raise OSError or ValueError."""
        key = read_bytes(Path(path), _MAX_TOKEN)
        return cls(key, password=password, algorithm=algorithm, key_id=key_id, audience=audience)

    def __repr__(self) -> str:
        return f"PrivateKeyJWT({self._algorithm})"

    def assertion(self, client_id: str, audience: str, now: float) -> str:
        """Return a statement for one request: that it comes from a client.

        Args:
            client_id: The client.
            audience: The issuer of the authorization server.
            now: Seconds since 1970.
        """
        header: dict[str, object] = {"alg": self._algorithm, "typ": "JWT"}
        if self._key_id is not None:
            header["kid"] = self._key_id
        claims: dict[str, object] = {
            "iss": client_id,
            "sub": client_id,
            "aud": self.audience or audience,
            "jti": base64url(os.urandom(16)),
            "iat": int(now),
            "exp": int(now) + _SECONDS,
        }
        return signed_token(header, claims, self._key)


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The client itself is the caller, and no user signs in (OAuth's grant ``client_credentials``).

    Attributes:
        client_id: The id of the client at the authorization server, where it is registered.
        client_secret: The secret of the client, if it has one.
        credential: In place of a secret, a `PrivateKeyJWT`, a `funcmcp.auth.ClientCertificate`, or a token of the
            platform as a federated credential: the `Path` of a file that the platform renews, or a function from the
            audience to a token. The function may be async.
        issuer: The authorization server that may get the credential. None: the one that the server names at the first
            request of the process. Another one is refused.
        scopes: The scopes to request. Empty: those that the server names.
        dpop: Bind tokens to a key of this process (RFC 9449), so that nobody else can use a stolen token.

    Raises:
        ValueError: There are both or neither of secret and credential.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    credential: Credential | None = field(default=None, kw_only=True, repr=False)
    issuer: str | None = field(default=None, kw_only=True)
    scopes: tuple[str, ...] = field(default=(), kw_only=True)
    dpop: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if (self.client_secret is None) == (self.credential is None):
            raise ValueError("ClientCredentials needs either client_secret or credential, such as PrivateKeyJWT(...).")
        _check_issuer(self.issuer)


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """The identity that a platform gives to its programs: its token is exchanged for one of the authorization server.

    Kubernetes, Azure, GitHub Actions and SPIFFE issue such tokens. The authorization server trusts the platform, so
    the program has no secret (RFC 7523 section 4, grant ``jwt-bearer``).

    Attributes:
        token: The token of the platform: the `Path` of a file that the platform renews, or a function from the
            audience, the issuer of the authorization server, to a token. The function may be async.
        client_id: The id of the client, if the authorization server wants one.
        issuer: The authorization server that may get the token; as in `ClientCredentials`.
        scopes: The scopes to request. Empty: those that the server names.
        dpop: Bind tokens to a key of this process; as in `ClientCredentials`.
    """

    token: TokenSource
    client_id: str | None = field(default=None, kw_only=True)
    issuer: str | None = field(default=None, kw_only=True)
    scopes: tuple[str, ...] = field(default=(), kw_only=True)
    dpop: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_issuer(self.issuer)


@public("funcmcp.client")
@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """The identity provider of a company, which decides which of its users may use which server.

    Attributes:
        token_endpoint: Its token endpoint, where an ID token is exchanged for an identity assertion (RFC 8693).
        id_token: The ID token of the user who has signed in to this application: the `Path` of a file, or a function,
            which may be async.
        client_id: The id of this application there.
        client_secret: The secret of this application there, if it has one.
        credential: In place of a secret, as in `ClientCredentials`.
    """

    token_endpoint: str
    id_token: TokenSource = field(repr=False)
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    credential: Credential | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        checked("IdentityProvider.token_endpoint", self.token_endpoint)
        if self.client_secret is not None and self.credential is not None:
            raise ValueError("IdentityProvider takes a client_secret or a credential, not both.")


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class EnterpriseSignIn:
    """Enterprise-managed authorization: a user who has signed in at a company's provider needs no other sign-in.

    The provider issues an identity assertion (ID-JAG) for the server, and the server's authorization server issues a
    token for it. Which servers a user may use is the decision of the company, at the provider.

    Attributes:
        client_id: The id of this application at the authorization server of the server.
        client_secret: Its secret there, if it has one.
        assertion: Where identity assertions come from: an `IdentityProvider`, or a function from the audience (the
            issuer of the authorization server) and the resource (the server) to an assertion. It may be async.
        credential: In place of a secret, as in `ClientCredentials`.
        issuer: The authorization server that may get the credential; as in `ClientCredentials`.
        scopes: The scopes to request. Empty: those that the server names.
        dpop: Bind tokens to a key of this process; as in `ClientCredentials`.

    Raises:
        ValueError: There are both a secret and a credential.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    assertion: IdentityProvider | Callable[[str, str], Awaitable[str] | str] = field(kw_only=True, repr=False)
    credential: Credential | None = field(default=None, kw_only=True, repr=False)
    issuer: str | None = field(default=None, kw_only=True)
    scopes: tuple[str, ...] = field(default=(), kw_only=True)
    dpop: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.client_secret is not None and self.credential is not None:
            raise ValueError("EnterpriseSignIn takes a client_secret or a credential, not both.")
        _check_issuer(self.issuer)


ProgramSignIn: TypeAlias = ClientCredentials | WorkloadIdentity | EnterpriseSignIn
"""How a program gets tokens."""


class Issuer(NamedTuple):
    """What a client authenticates to.

    Attributes:
        name: The issuer, which is the audience of statements about the client.
        token_endpoint: The token endpoint, which is the audience for `ClientCertificate`.
        auth_methods: How clients can authenticate; empty if that is unknown.
    """

    name: str
    token_endpoint: str
    auth_methods: tuple[str, ...] = ()


class ClientFields(NamedTuple):
    """What proves that a request for tokens comes from a client.

    Attributes:
        headers: Header fields.
        form: Members of the form.
    """

    headers: dict[str, str]
    form: dict[str, str]


async def client_fields(
    client_id: str | None, client_secret: str | None, credential: Credential | None, issuer: Issuer, now: float
) -> ClientFields:
    """Return what a request for tokens needs of the client; raise SignInError if its credential can't be read.

    Args:
        client_id: The client; None if the request needs none.
        client_secret: Its secret, or None.
        credential: In place of the secret, or None.
        issuer: The authorization server.
        now: Seconds since 1970.
    """
    if client_id is None:
        return ClientFields({}, {})
    if client_secret is not None:
        if secret_method(issuer.auth_methods) == "client_secret_post":
            return ClientFields({}, {"client_id": client_id, "client_secret": client_secret})
        return ClientFields({"authorization": basic_of(client_id, client_secret)}, {})
    if credential is None:
        return ClientFields({}, {"client_id": client_id})
    if isinstance(credential, ClientAssertion):
        # Entra ID, for which certificates are, expects its token endpoint.
        audience = issuer.name if isinstance(credential, PrivateKeyJWT) else issuer.token_endpoint
        assertion = credential.assertion(client_id, audience, now)
    else:
        assertion = await platform_token(credential, issuer.name)
    form = {"client_id": client_id, "client_assertion_type": _ASSERTION_TYPE, "client_assertion": assertion}
    return ClientFields({}, form)


def secret_method(auth_methods: tuple[str, ...]) -> str:
    """Return how a secret is sent: as the authorization server offers it, in a header where it can be either."""
    if "client_secret_basic" not in auth_methods and "client_secret_post" in auth_methods:
        return "client_secret_post"
    return "client_secret_basic"


async def platform_token(source: TokenSource, audience: str) -> str:
    """Return the present token of the platform; raise SignInError if there is none."""
    if isinstance(source, Path):
        try:
            token: object = read_bytes(source, _MAX_TOKEN).decode("ascii").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise SignInError(f"The token in {source} can't be read: {reason}.") from None
    else:
        token = await result_of(source, audience)
    if not isinstance(token, str) or not token or len(token) > _MAX_TOKEN:
        raise SignInError("The platform has issued no token.")
    return token


async def result_of(function: Callable[..., object], *arguments: str) -> object:
    """Return the result of a function that may be async, and that takes these arguments or none."""
    result = function(*arguments) if inspect.signature(function).parameters else function()
    return await result if inspect.isawaitable(result) else result


def signed_token(header: dict[str, object], claims: dict[str, object], key: RSAKey | ECKey | OKPKey) -> str:
    """Return a signed JSON Web Token. The header names the algorithm."""
    from joserfc.jws import JWSRegistry  # noqa: PLC0415 - as in _private_key

    signed = f"{base64url(encode(header))}.{base64url(encode(claims))}"
    signature = JWSRegistry.algorithms[cast("str", header["alg"])].sign(signed.encode("ascii"), key)
    return f"{signed}.{base64url(signature)}"


def _private_key(pem: bytes, password: bytes | None) -> tuple[RSAKey | ECKey | OKPKey, tuple[str, ...]]:
    """Return a key and its algorithms; raise ValueError for a key that can't be used."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey  # noqa: PLC0415 - few have a key
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above
        from joserfc.jwk import ECKey, OKPKey, RSAKey  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('PrivateKeyJWT needs: pip install "funcmcp[client,auth]"', name=error.name) from error
    try:
        key = load_pem_private_key(pem, password)
    except (TypeError, ValueError) as error:
        # The library's texts name what is wrong (a password, another format), and contain nothing of the key.
        raise ValueError(f"PrivateKeyJWT can't read its key: {error}") from None
    if isinstance(key, RSAPrivateKey) and key.key_size >= _MIN_RSA_BITS:
        return RSAKey.import_key(key), _ALGORITHMS["RSA"]
    if isinstance(key, EllipticCurvePrivateKey):
        elliptic = ECKey.import_key(key)
        if elliptic.curve_name in _ALGORITHMS:
            return elliptic, _ALGORITHMS[elliptic.curve_name]
    if isinstance(key, Ed25519PrivateKey):
        return OKPKey.import_key(key), _ALGORITHMS["Ed25519"]
    raise ValueError("PrivateKeyJWT needs an RSA key of at least 2048 bits, P-256, P-384, P-521 or Ed25519.")


def _check_issuer(issuer: str | None) -> None:
    if issuer is not None:
        checked("The issuer", issuer)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
