"""What proves that a request comes from a client, and keys and tokens that can't be used."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

from funcmcp._client.credentials import Issuer, client_fields, platform_token
from funcmcp.client import (
    ClientCredentials,
    EnterpriseSignIn,
    IdentityProvider,
    PrivateKeyJWT,
    SignIn,
    SignInError,
    WorkloadIdentity,
)
from tests.oauth_proxy.test_certificates import pem as certificate_pem

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.lowest("joserfc and cryptography sign.")

ISSUER = Issuer("https://login.example.com", "https://login.example.com/token")
NOW = 1_700_000_000.0


def pem(key: Any, password: bytes | None = None) -> bytes:
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password)
    data: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return data


KEYS: dict[str, Callable[[], Any]] = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ES512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


KINDS: dict[str, Any] = {"RS": RSAKey, "ES": ECKey, "Ed": OKPKey}


@pytest.mark.parametrize("algorithm", KEYS)
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
def test_a_statement_of_a_client_is_signed_with_its_key(algorithm: str) -> None:
    key = KEYS[algorithm]()
    signer = PrivateKeyJWT(pem(key), key_id="k1")
    assertion = signer.assertion("reports", ISSUER.name, NOW)
    public = KINDS[algorithm[:2]].import_key(pem(key))
    token = jwt.decode(assertion, public, algorithms=[algorithm])
    assert token.header == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
    assert (
        token.claims.pop("jti")
        != jwt.decode(signer.assertion("reports", ISSUER.name, NOW), public, algorithms=[algorithm]).claims["jti"]
    )
    assert token.claims == {
        "iss": "reports",
        "sub": "reports",
        "aud": ISSUER.name,
        "iat": int(NOW),
        "exp": int(NOW) + 60,
    }
    assert repr(signer) == f"PrivateKeyJWT({algorithm})"


def test_the_algorithm_and_the_audience_of_a_statement_can_be_chosen(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(pem(KEYS["RS256"](), b"open sesame"))
    key = PrivateKeyJWT.from_file(file, password="open sesame", algorithm="PS256", audience="https://other.example.com")
    header, claims, _ = key.assertion("reports", ISSUER.name, NOW).split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "=="))["alg"] == "PS256"
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["aud"] == "https://other.example.com"


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        (b"none", {}, "can't read its key"),
        (pem(KEYS["ES256"](), b"x"), {}, "can't read its key: Password was not given"),
        (pem(rsa.generate_private_key(65537, 1024)), {}, "RSA key of at least 2048 bits"),
        (pem(ec.generate_private_key(ec.SECP256K1())), {}, "P-256, P-384, P-521 or Ed25519"),
        (pem(ed448.Ed448PrivateKey.generate()), {}, "P-256, P-384, P-521 or Ed25519"),
        (pem(KEYS["ES256"]()), {"algorithm": "RS256"}, "must be ES256 for this key"),
        (pem(KEYS["ES256"]()), {"algorithm": "HS256"}, "must be ES256 for this key"),
    ],
)
def test_a_key_that_can_not_be_used_is_refused(key: bytes, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        PrivateKeyJWT(key, **options)
    assert "BEGIN" not in str(raised.value)


@pytest.mark.parametrize(
    ("auth_methods", "headers", "form"),
    [
        ((), {"authorization": "Basic cmVwb3J0czphJTNBYg=="}, {}),
        (("client_secret_post", "client_secret_basic"), {"authorization": "Basic cmVwb3J0czphJTNBYg=="}, {}),
        (("client_secret_post",), {}, {"client_id": "reports", "client_secret": "a:b"}),
    ],
)
async def test_a_secret_is_sent_as_the_authorization_server_takes_it(
    auth_methods: tuple[str, ...], headers: dict[str, str], form: dict[str, str]
) -> None:
    issuer = ISSUER._replace(auth_methods=auth_methods)
    assert await client_fields("reports", "a:b", None, issuer, NOW) == (headers, form)


async def test_a_client_without_credential_sends_its_id_and_one_without_id_sends_nothing() -> None:
    assert await client_fields("reports", None, None, ISSUER, NOW) == ({}, {"client_id": "reports"})
    assert await client_fields(None, None, None, ISSUER, NOW) == ({}, {})


async def test_a_certificate_makes_its_statement_for_the_token_endpoint() -> None:
    from funcmcp.auth import ClientCertificate

    fields = await client_fields("reports", None, ClientCertificate(certificate_pem()), ISSUER, NOW)
    claims = json.loads(base64.urlsafe_b64decode(fields.form["client_assertion"].split(".")[1] + "=="))
    assert claims["aud"] == ISSUER.token_endpoint


async def test_a_token_of_the_platform_is_a_credential_and_read_anew_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = []
    for text in ("first\n", "second"):
        file.write_text(text)
        tokens.append((await client_fields("reports", None, file, ISSUER, NOW)).form["client_assertion"])
    assert tokens == ["first", "second"]


async def test_a_function_returns_the_token_for_an_audience() -> None:
    async def later(audience: str) -> str:
        return f"token for {audience}"

    assert await platform_token(later, "a") == "token for a"
    assert await platform_token(lambda audience: f"token for {audience}", "b") == "token for b"
    assert await platform_token(lambda: "token for one audience", "c") == "token for one audience"


@pytest.mark.parametrize("token", ["", None, 7, "x" * 70_000])
async def test_a_function_without_a_token_is_an_error(token: Any) -> None:
    with pytest.raises(SignInError, match="no token"):
        await platform_token(lambda: token, "a")


async def test_a_file_without_a_token_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SignInError, match=r"token in .*absent can't be read: No such file"):
        await platform_token(tmp_path / "absent", "a")
    (tmp_path / "broken").write_bytes(b"\xff")
    with pytest.raises(SignInError, match="it is not a token"):
        await platform_token(tmp_path / "broken", "a")
    (tmp_path / "empty").write_text(" \n")
    with pytest.raises(SignInError, match="no token"):
        await platform_token(tmp_path / "empty", "a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClientCredentials("reports"), "either client_secret or credential"),
        (lambda: ClientCredentials("reports", "s", credential=Path("t")), "either client_secret or credential"),
        (
            lambda: ClientCredentials("reports", "s", issuer="http://login.example.com"),
            "must begin with https",
        ),
        (lambda: WorkloadIdentity(Path("t"), issuer="login"), "The issuer must be an absolute URL"),
        (lambda: EnterpriseSignIn("a", "s", credential=Path("t"), assertion=lambda audience, resource: ""), "not both"),
        (lambda: EnterpriseSignIn("a", "s", issuer="x", assertion=lambda audience, resource: ""), "The issuer must be"),
        (lambda: provider(token_endpoint="http://idp.example.com/token"), "must begin with https"),
        (lambda: provider(client_secret="s", credential=Path("t")), "not both"),
        (lambda: SignIn(dpop=True, file=Path("t")), "takes no file"),
    ],
)
def test_options_that_contradict_each_other_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def provider(token_endpoint: str = "https://idp.example.com/token", **options: Any) -> IdentityProvider:
    return IdentityProvider(token_endpoint=token_endpoint, client_id="desk", id_token=lambda: "id", **options)


def test_no_representation_has_a_secret() -> None:
    texts = [
        repr(ClientCredentials("reports", "hush")),
        repr(EnterpriseSignIn("desk", "hush", assertion=provider(client_secret="hush"))),
        repr(provider(client_secret="hush")),
    ]
    assert "hush" not in " ".join(texts)
