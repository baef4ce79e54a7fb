"""An OpenID provider as upstream: discovery, requests, and everything that a provider may answer."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from funcmcp._oauth_proxy.upstream import (
    AuthorizationRequest,
    UpstreamMisconfiguredError,
    UpstreamRefusedError,
    UpstreamUnavailableError,
)
from funcmcp.auth import JWKS, OIDC
from tests.auth.issuer import certificate
from tests.auth.making_tokens import NOW, Clock, key, public, sign

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")


class Provider:
    """Answers each path with what a test sets.

    Attributes:
        issuer: The URL of the provider.
        answers: Status and body by path; a body that is not bytes is sent as JSON. Status 0: there is no answer.
        requests: Path, header and form of the requests.
    """

    def __init__(self) -> None:
        self.issuer = ""
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.document: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, Any]] = {}

    def open(self, issuer: str) -> None:
        self.issuer = issuer
        self.document = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize?tenant=1",
            "token_endpoint": f"{issuer}/token",
            "revocation_endpoint": f"{issuer}/revoke",
            "jwks_uri": f"{issuer}/keys",
            "scopes_supported": ["openid", "offline_access"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.answers = {
            "/.well-known/openid-configuration": (200, self.document),
            "/keys": (200, {"keys": [public()]}),
            "/revoke": (200, b""),
        }

    def id_token(self, **changes: Any) -> str:
        good = {"iss": self.issuer, "aud": "app", "sub": "ada", "exp": NOW + 300, "iat": NOW, "nonce": "nonce"}
        return sign(good | changes)

    def forms(self, path: str) -> list[dict[str, str]]:
        return [form for requested, _, form in self.requests if requested == path]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            length = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
            body = await reader.readexactly(int(length[0].partition(":")[2])) if length else b""
            self.requests.append((path, head, dict(parse_qsl(body.decode()))))
            status, value = self.answers.get(path, (404, {}))
            if not status:
                await reader.read()  # until the proxy closes the connection
                return
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            location = "Location: http://127.0.0.1:1/\r\n" if 300 <= status < 400 else ""
            fields = f"Content-Type: application/json\r\n{location}Content-Length: {len(content)}\r\n"
            writer.write(f"HTTP/1.1 {status} Status\r\n{fields}Connection: close\r\n\r\n".encode() + content)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the proxy has stopped reading an answer that is too long
        finally:
            writer.close()


@asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncIterator[Provider]:
    provider = Provider()
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0, ssl=tls)
    provider.open(f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield provider
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with running() as served:
        yield served


def upstream(provider: Provider, **options: Any) -> OIDC:
    defaults: dict[str, Any] = {"client_secret": "a secret:+", "clock": Clock()}
    return OIDC(provider.issuer, "app", **defaults | options)


async def exchange(oidc: OIDC) -> Any:
    return await oidc.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


async def test_the_user_is_sent_to_the_endpoint_of_the_provider(provider: Provider) -> None:
    url = await upstream(provider, scopes=["profile"], parameters={"audience": "orders"}).authorization_url(REQUEST)
    assert url.startswith(f"{provider.issuer}/authorize?tenant=1&")
    assert dict(parse_qsl(urlsplit(url).query)) == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": REQUEST.redirect_uri,
        "scope": "openid profile offline_access",
        "state": "state",
        "nonce": "nonce",
        "code_challenge": "challenge",
        "code_challenge_method": "S256",
        "prompt": "consent",
        "audience": "orders",
    }


async def test_no_resource_is_sent_and_a_parameter_can_be_left_out(provider: Provider) -> None:
    url = await upstream(provider, parameters={"prompt": ""}).authorization_url(REQUEST)
    assert {"prompt", "resource"}.isdisjoint(dict(parse_qsl(urlsplit(url).query)))


async def test_a_provider_without_offline_access_is_not_asked_for_it(provider: Provider) -> None:
    provider.document["scopes_supported"] = ["openid"]
    url = await upstream(provider).authorization_url(REQUEST)
    query = dict(parse_qsl(urlsplit(url).query))
    assert (query["scope"], "prompt" in query) == ("openid profile email", False)


async def test_a_code_is_exchanged_for_the_user_in_the_id_token(provider: Provider) -> None:
    more = {
        "name": "Ada",
        "email": "ada@example.com",
        "email_verified": True,
        "roles": ["cook"],
        "department": "kitchen",
    }
    provider.answers["/token"] = (
        200,
        {"id_token": provider.id_token(**more), "refresh_token": "again", "access_token": "x"},
    )
    signed_in = await exchange(upstream(provider))
    user = signed_in.user
    assert (user.subject, user.name, user.email, user.roles) == ("ada", "Ada", "ada@example.com", {"cook"})
    assert user.claims["department"] == "kitchen"
    assert signed_in.refresh_token == "again"
    assert provider.forms("/token") == [
        {
            "grant_type": "authorization_code",
            "code": "code",
            "redirect_uri": REQUEST.redirect_uri,
            "code_verifier": "verifier",
        }
    ]
    head = next(head for path, head, _ in provider.requests if path == "/token")
    pair = base64.b64encode(b"app:a+secret%3A%2B").decode()
    assert f"authorization: basic {pair.lower()}" in head.lower()


@pytest.mark.parametrize(
    ("secret", "methods", "form"),
    [
        ("s", ["client_secret_post"], {"client_id": "app", "client_secret": "s"}),
        (None, ["none"], {"client_id": "app"}),
        (None, ["client_secret_basic"], {"client_id": "app"}),
        ("s", ["client_secret_basic", "client_secret_post"], {}),
    ],
)
async def test_the_proxy_authenticates_as_the_provider_supports(
    provider: Provider, secret: str | None, methods: list[str], form: dict[str, str]
) -> None:
    provider.document["token_endpoint_auth_methods_supported"] = methods
    provider.answers["/token"] = 200, {"id_token": provider.id_token()}
    await exchange(upstream(provider, client_secret=secret))
    (sent,) = provider.forms("/token")
    assert {name: sent[name] for name in sent if name.startswith("client")} == form


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_author_can_override_how_the_proxy_authenticates(provider: Provider) -> None:
    provider.document["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    provider.answers["/token"] = 200, {"id_token": provider.id_token()}

    async def assertion() -> str:
        return "signed"

    await exchange(upstream(provider, token_endpoint_auth_method="client_secret_post"))
    await exchange(upstream(provider, client_secret=None, credential=assertion))
    await exchange(upstream(provider, client_secret=None, credential=lambda: "signed at once"))
    sent = [{name: form[name] for name in form if name.startswith("client")} for form in provider.forms("/token")]
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert sent == [
        {"client_id": "app", "client_secret": "a secret:+"},
        {"client_id": "app", "client_assertion_type": kind, "client_assertion": "signed"},
        {"client_id": "app", "client_assertion_type": kind, "client_assertion": "signed at once"},
    ]
    assert not any("authorization:" in head.lower() for path, head, _ in provider.requests if path == "/token")


async def test_token_requests_have_the_parameters_of_the_author(provider: Provider) -> None:
    provider.answers["/token"] = 200, {"id_token": provider.id_token()}
    oidc = upstream(provider, token_parameters={"audience": "orders", "scope": ""})
    await exchange(oidc)
    provider.answers["/token"] = 200, {"access_token": "x"}
    await oidc.refresh("again", "ada")
    with_code, refresh = provider.forms("/token")
    assert with_code["audience"] == "orders"
    assert refresh == {"grant_type": "refresh_token", "refresh_token": "again", "audience": "orders"}


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another"},
        {"iss": "https://evil.example.com"},
        {"nonce": "another"},
        {"exp": NOW - 100},
        {"sub": ""},
    ],
)
async def test_an_id_token_of_another_sign_in_is_refused(provider: Provider, changes: dict[str, Any]) -> None:
    provider.answers["/token"] = 200, {"id_token": provider.id_token(**changes)}
    with pytest.raises(UpstreamRefusedError):
        await exchange(upstream(provider))


async def test_an_answer_without_an_id_token_is_refused(provider: Provider) -> None:
    provider.answers["/token"] = 200, {"access_token": provider.id_token()}
    with pytest.raises(UpstreamRefusedError, match="no ID token"):
        await exchange(upstream(provider))


async def test_new_keys_of_the_provider_are_requested_once_and_unknown_ones_end_no_sign_in(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    monkeypatch.setattr("funcmcp._oauth_proxy.oidc.JWKS", partial(JWKS, clock=clock))
    oidc = upstream(provider)

    def sign_with(name: str) -> None:
        good = {"iss": provider.issuer, "aud": "app", "sub": "ada", "exp": NOW + 300, "iat": NOW, "nonce": "nonce"}
        token = sign(good, signer=key(name=name), header={"kid": name})
        provider.answers["/token"] = 200, {"id_token": token, "refresh_token": f"of {name}"}

    def requests() -> int:
        return len(provider.forms("/keys"))

    sign_with("first")
    await exchange(oidc)
    sign_with("second")
    provider.answers["/keys"] = 200, {"keys": [public(name="second")]}
    assert await oidc.refresh("again", "ada") == (None, "of second", None, None)  # too soon for another request
    assert "event=oauth_id_token_ignored" in caplog.text
    with pytest.raises(UpstreamUnavailableError, match="key of the ID token"):
        await exchange(oidc)
    assert requests() == 1
    clock.now += 30
    users = [signed_in.user.subject for signed_in in await asyncio.gather(*(exchange(oidc) for _ in range(10)))]
    assert (users, requests()) == (["ada"] * 10, 2)
    renewed = await oidc.refresh("again", "ada")
    assert renewed.user is not None
    sign_with("first")  # the provider has withdrawn this key
    for _ in range(3):
        clock.now += 20
        with pytest.raises(UpstreamUnavailableError):
            await exchange(oidc)
    assert requests() == 3


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (302, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"a":' + b'"' + b"x" * 300_000 + b'"}'),
        (200, b" " * 10_000_000),
        (404, b"{}"),
        (429, b"{}"),
        (500, b'{"error":"invalid_grant"}'),
        (503, b""),
        (408, {"error": "invalid_grant"}),
        (400, {"error": "invalid_client"}),
        (401, {"error": "unauthorized_client", "error_description": "\x1b[31m"}),
    ],
)
async def test_an_unusable_answer_is_an_outage(provider: Provider, status: int, body: Any) -> None:
    provider.answers["/token"] = status, body
    with pytest.raises(UpstreamUnavailableError):
        await exchange(upstream(provider))


async def test_a_refused_code_is_not_an_outage(provider: Provider) -> None:
    provider.answers["/token"] = 400, {"error": "invalid_grant", "error_description": "used"}
    with pytest.raises(UpstreamRefusedError, match="used"):
        await exchange(upstream(provider))


async def test_a_provider_that_does_not_listen_is_an_outage() -> None:
    async with running() as gone:
        oidc = upstream(gone)
    for _ in range(2):
        with pytest.raises(UpstreamUnavailableError):
            await oidc.authorization_url(REQUEST)


async def test_a_refresh_repeats_the_scopes_and_keeps_the_user(provider: Provider) -> None:
    provider.answers["/token"] = 200, {"access_token": "x"}
    oidc = upstream(provider)
    assert await oidc.refresh("again", "ada") == (None, None, None, None)
    assert provider.forms("/token") == [
        {"grant_type": "refresh_token", "refresh_token": "again", "scope": "openid profile email offline_access"}
    ]
    provider.answers["/token"] = 200, {"id_token": sign_without_nonce(provider), "refresh_token": "and again"}
    renewed = await oidc.refresh("again", "ada")
    assert renewed.user is not None
    assert (renewed.user.subject, renewed.refresh_token) == ("ada", "and again")


def sign_without_nonce(provider: Provider) -> str:
    return sign({"iss": provider.issuer, "aud": "app", "sub": "ada", "exp": NOW + 300, "iat": NOW})


async def test_a_refresh_that_names_another_user_is_refused(provider: Provider) -> None:
    provider.answers["/token"] = 200, {"id_token": provider.id_token(sub="eve")}
    with pytest.raises(UpstreamRefusedError, match="another user"):
        await upstream(provider).refresh("again", "ada")


async def test_a_sign_in_is_revoked_where_the_provider_can(provider: Provider) -> None:
    oidc = upstream(provider)
    assert await oidc.revoke("again")
    assert provider.forms("/revoke") == [{"token": "again", "token_type_hint": "refresh_token"}]
    provider.answers["/revoke"] = 400, {"error": "invalid_grant"}
    with pytest.raises(UpstreamUnavailableError):
        await oidc.revoke("again")
    del provider.document["revocation_endpoint"]
    assert not await upstream(provider).revoke("again")


async def test_the_discovery_document_is_requested_once(provider: Provider) -> None:
    oidc = upstream(provider)
    await asyncio.gather(*(oidc.authorization_url(REQUEST) for _ in range(20)))
    assert await oidc.requires_issuer()
    assert [path for path, _, _ in provider.requests] == ["/.well-known/openid-configuration"]


async def test_the_discovery_document_may_have_an_address_of_its_own(provider: Provider) -> None:
    provider.answers["/tenant/policy/.well-known/openid-configuration"] = 200, provider.document
    del provider.answers["/.well-known/openid-configuration"]
    oidc = upstream(provider, discovery=f"{provider.issuer}/tenant/policy/.well-known/openid-configuration")
    assert (await oidc.authorization_url(REQUEST)).startswith(provider.document["authorization_endpoint"])
    with pytest.raises(ValueError, match=r"OIDC\.discovery"):
        upstream(provider, discovery="http://login.example.com/document")


async def test_a_document_that_has_become_unusable_does_not_replace_the_last_one(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    oidc = upstream(provider)
    first = await oidc.authorization_url(REQUEST)
    provider.document["issuer"] = "https://evil.example.com"
    oidc._next_discovery = 0.0
    assert await oidc.authorization_url(REQUEST) == first
    assert "event=oauth_discovery_failed" in caplog.text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": "https://evil.example.com"}, "has the issuer 'https://evil.example.com'; configure that one"),
        ({"token_endpoint": None}, "no token_endpoint"),
        ({"jwks_uri": "http://evil.example.com/keys"}, "not an https URL"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "not an https URL"),
    ],
)
async def test_an_unusable_discovery_document_is_an_outage_with_a_reason_in_the_log(
    provider: Provider, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], reason: str
) -> None:
    provider.document |= changes
    oidc = upstream(provider)
    with pytest.raises(UpstreamUnavailableError):
        await oidc.authorization_url(REQUEST)
    assert reason in caplog.text
    with pytest.raises(UpstreamMisconfiguredError, match="provider_document"):
        await oidc.authorization_url(REQUEST)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("http://login.example.com", "app"), "https"),
        (("https://login.example.com", ""), "client_id"),
    ],
)
def test_an_invalid_configuration_is_refused(arguments: tuple[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        OIDC(*arguments)
    with pytest.raises(ValueError, match="state"):
        OIDC("https://login.example.com", "app", parameters={"state": "x"})
    with pytest.raises(ValueError, match=r"token_parameters can't contain code_verifier"):
        OIDC("https://login.example.com", "app", token_parameters={"code_verifier": "x"})
    with pytest.raises(ValueError, match="not both"):
        OIDC("https://login.example.com", "app", "secret", credential=lambda: "")
    with pytest.raises(ValueError, match="'client_secret_basic', 'client_secret_post' or 'client_secret_jwt'"):
        OIDC("https://login.example.com", "app", "secret", token_endpoint_auth_method="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs client_secret"):
        OIDC("https://login.example.com", "app", token_endpoint_auth_method="client_secret_post")
    with pytest.raises(TypeError, match="list"):
        OIDC("https://login.example.com", "app", scopes="profile")


def test_the_secret_is_not_in_the_representation() -> None:
    assert repr(OIDC("https://login.example.com", "app", "secret")) == "OIDC('https://login.example.com', 'app')"


async def test_the_token_of_a_sign_in_is_exchanged_for_one_of_another_api(provider: Provider) -> None:
    oidc = upstream(provider, token_exchange=True)
    provider.answers["/token"] = (
        200,
        {"id_token": provider.id_token(), "access_token": "mine", "token_type": "Bearer", "expires_in": 300},
    )
    assert (await exchange(oidc)).access_token == ("mine", 300.0)
    provider.answers["/token"] = 200, {"access_token": "theirs", "token_type": "bearer", "expires_in": 10**9}
    assert await oidc.exchange_token("mine", ["read", "write"], "orders-api") == ("theirs", 86_400.0)
    provider.answers["/token"] = 200, {"access_token": "theirs"}
    assert await oidc.exchange_token("mine", [], None) == ("theirs", None)
    common = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": "mine",
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    assert provider.forms("/token")[1:] == [common | {"scope": "read write", "audience": "orders-api"}, common]


@pytest.mark.parametrize("answer", [{}, {"access_token": 5}, {"access_token": "x", "token_type": "N_A"}])
async def test_an_exchange_without_a_usable_token_is_an_outage(provider: Provider, answer: dict[str, Any]) -> None:
    provider.answers["/token"] = 200, answer
    with pytest.raises(UpstreamUnavailableError, match="no access token"):
        await upstream(provider, token_exchange=True).exchange_token("mine", ["read"], None)


@pytest.mark.parametrize("error", ["invalid_grant", "interaction_required", "consent_required", "access_denied"])
async def test_an_exchange_that_the_provider_refuses_is_not_an_outage(provider: Provider, error: str) -> None:
    provider.answers["/token"] = 400, {"error": error}
    with pytest.raises(UpstreamRefusedError, match=error):
        await upstream(provider, token_exchange=True).exchange_token("mine", ["read"], None)


# Providers that differ


async def test_endpoints_of_the_author_replace_those_of_the_document(provider: Provider) -> None:
    provider.answers["/internal/token"] = 200, {"id_token": provider.id_token()}
    oidc = upstream(provider, endpoints={"token_endpoint": f"{provider.issuer}/internal/token"})
    assert (await exchange(oidc)).user.subject == "ada"
    assert provider.forms("/token") == []
    assert len(provider.forms("/internal/token")) == 1


@pytest.mark.parametrize(
    ("endpoints", "reason"),
    [
        ({"token": "https://login.example.com"}, "Unknown endpoint 'token' in OIDC.endpoints. Valid names: author"),
        ({"issuer": "https://login.example.com"}, "Unknown endpoint"),
        ({"jwks_uri": "http://keycloak:8080/keys"}, "must begin with https"),
        ({"jwks_uri": "http://keycloak:8080@evil.example.com/"}, "must be an absolute URL"),
    ],
)
def test_an_unknown_or_insecure_endpoint_of_the_author_is_refused(endpoints: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        OIDC("https://login.example.com", "app", endpoints=endpoints)


def insecure(**options: Any) -> OIDC:
    return OIDC("http://keycloak:8080/realms/orders", "app", "s", **{"insecure_hosts": ["keycloak:8080"]} | options)


def test_a_host_without_tls_is_named_and_the_log_warns_of_it(caplog: pytest.LogCaptureFixture) -> None:
    oidc = insecure(discovery="http://KEYCLOAK:8080/document", endpoints={"jwks_uri": "http://keycloak:8080/keys"})
    assert oidc.issuer == "http://keycloak:8080/realms/orders"
    assert "OIDC.insecure_hosts: requests to keycloak:8080 go without TLS" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"insecure_hosts": ["keycloak"]},
        {"insecure_hosts": ["keycloak:80"]},
        {"insecure_hosts": ["other:8080"]},
        {"insecure_hosts": []},
        {"discovery": "http://keycloak:9090/document"},
        {"discovery": "http://keycloak:8080.evil.example.com/document"},
        {"discovery": "ftp://keycloak:8080/document"},
        {"endpoints": {"token_endpoint": "http://169.254.169.254/"}},
        {"insecure_hosts": ["http://keycloak:8080"]},
        {"insecure_hosts": ["*"]},
        {"insecure_hosts": ["*.internal:8080"]},
        {"insecure_hosts": ["keycloak:8080/realms"]},
        {"insecure_hosts": ["user@keycloak:8080"]},
        {"insecure_hosts": [""]},
    ],
)
def test_another_host_without_tls_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"https://|absolute URL|OIDC\.insecure_hosts"):
        insecure(**options)


@pytest.mark.parametrize(
    "url", ["http://other:8080/", "http://keycloak/", "http://keycloak:8080@evil.example.com/", "http://evil/#:8080"]
)
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri", "revocation_endpoint"])
async def test_a_document_can_not_lead_to_another_host_without_tls(name: str, url: str) -> None:
    document = {
        "issuer": "http://keycloak:8080/realms/orders",
        "authorization_endpoint": "http://keycloak:8080/authorize",
        "token_endpoint": "http://keycloak:8080/token",
        "jwks_uri": "http://keycloak:8080/keys",
    }
    oidc = insecure()
    assert oidc._read(document).token_endpoint == "http://keycloak:8080/token"
    with pytest.raises(UpstreamUnavailableError, match=f"the {name} in the discovery document is not an https URL"):
        oidc._read(document | {name: url})


async def test_a_user_signs_in_at_a_host_without_tls_that_is_named(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keycloak in a compose file: its document has the public issuer, and addresses of another host for servers."""
    host = provider.issuer.replace("127.0.0.1", "keycloak").removeprefix("http://")
    resolved = socket.getaddrinfo

    def getaddrinfo(name: Any, *arguments: Any, **options: Any) -> Any:
        return resolved("127.0.0.1" if name in {"keycloak", b"keycloak"} else name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    provider.document |= {"token_endpoint": f"http://{host}/token", "jwks_uri": f"http://{host}/keys"}
    provider.answers["/token"] = 200, {"id_token": provider.id_token()}
    discovery = f"http://{host}/.well-known/openid-configuration"
    oidc = upstream(provider, discovery=discovery, insecure_hosts=[host])
    assert (await exchange(oidc)).user.subject == "ada"
    heads = [head.lower() for _, head, _ in provider.requests]
    assert [f"host: {host}" in head for head in heads] == [True] * 3  # document, token, keys
    with pytest.raises(UpstreamUnavailableError):
        await upstream(provider).authorization_url(REQUEST)


def test_one_string_of_hosts_and_a_missing_ca_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="list of strings"):
        insecure(insecure_hosts="keycloak:8080")
    with pytest.raises(ValueError, match=r"missing\.pem"):
        OIDC("https://login.example.com", "app", ca_file=tmp_path / "missing.pem")


async def test_a_provider_with_a_private_authority_is_reached_with_its_file(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    async with running(tls) as provider:
        provider.answers["/token"] = 200, {"id_token": provider.id_token()}
        assert (await exchange(upstream(provider, ca_file=file))).user.subject == "ada"
        assert len(provider.forms("/keys")) == 1
        with pytest.raises(UpstreamUnavailableError):
            await upstream(provider).authorization_url(REQUEST)


@pytest.mark.parametrize(
    ("document", "options"),
    [({"require_pushed_authorization_requests": True}, {}), ({}, {"pushed_requests": True})],
)
async def test_the_authorization_request_is_pushed_where_the_provider_demands_it(
    provider: Provider, document: dict[str, Any], options: dict[str, Any]
) -> None:
    provider.document |= {"pushed_authorization_request_endpoint": f"{provider.issuer}/par"} | document
    provider.answers["/par"] = 201, {"request_uri": "urn:ietf:params:oauth:request_uri:1", "expires_in": 60}
    url = await upstream(provider, parameters={"audience": "orders", "prompt": ""}, **options).authorization_url(
        REQUEST
    )
    assert dict(parse_qsl(urlsplit(url).query)) == {
        "tenant": "1",
        "client_id": "app",
        "request_uri": "urn:ietf:params:oauth:request_uri:1",
    }
    (pushed,) = provider.forms("/par")
    assert pushed == {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": REQUEST.redirect_uri,
        "scope": "openid profile email offline_access",
        "state": "state",
        "nonce": "nonce",
        "code_challenge": "challenge",
        "code_challenge_method": "S256",
        "audience": "orders",
    }
    assert "authorization: basic" in next(head for path, head, _ in provider.requests if path == "/par").lower()


async def test_a_request_is_not_pushed_where_the_provider_only_supports_it(provider: Provider) -> None:
    provider.document["pushed_authorization_request_endpoint"] = f"{provider.issuer}/par"
    assert "state=state" in await upstream(provider).authorization_url(REQUEST)
    assert provider.forms("/par") == []


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"error": "invalid_request", "error_description": "no"}),
        (401, {"error": "invalid_client"}),
        (201, {}),
        (201, []),
        (201, {"request_uri": 5}),
        (201, {"request_uri": ""}),
        (201, {"request_uri": "x" * 2049}),
        (302, {"request_uri": "urn:1"}),
        (500, {"request_uri": "urn:1"}),
    ],
)
async def test_a_pushed_request_that_is_not_taken_is_an_outage(provider: Provider, answer: tuple[int, Any]) -> None:
    provider.document["pushed_authorization_request_endpoint"] = f"{provider.issuer}/par"
    provider.answers["/par"] = answer
    with pytest.raises(UpstreamUnavailableError, match="status"):
        await upstream(provider, pushed_requests=True).authorization_url(REQUEST)


async def test_a_provider_that_demands_pushed_requests_without_an_endpoint_is_unusable(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.document["require_pushed_authorization_requests"] = True
    with pytest.raises(UpstreamUnavailableError):
        await upstream(provider).authorization_url(REQUEST)
    assert "the discovery document has no pushed_authorization_request_endpoint" in caplog.text


@pytest.mark.parametrize(
    ("methods", "options"),
    [
        (["client_secret_jwt", "private_key_jwt"], {}),
        (["client_secret_basic"], {"token_endpoint_auth_method": "client_secret_jwt"}),
    ],
)
async def test_the_secret_signs_an_assertion_where_the_provider_demands_it(
    provider: Provider, methods: list[str], options: dict[str, Any]
) -> None:
    secret = "a secret with more than 32 characters"
    provider.document["token_endpoint_auth_methods_supported"] = methods
    provider.answers["/token"] = 200, {"id_token": provider.id_token()}
    for _ in range(2):
        await exchange(upstream(provider, client_secret=secret, **options))
    forms = provider.forms("/token")
    assertions = [jwt.decode(form["client_assertion"], OctKey.import_key(secret), ["HS256"]).claims for form in forms]
    assert assertions[0] == {
        "iss": "app",
        "sub": "app",
        "aud": f"{provider.issuer}/token",
        "jti": assertions[0]["jti"],
        "iat": int(NOW),
        "exp": int(NOW) + 60,
    }
    assert assertions[0]["jti"] != assertions[1]["jti"]
    assert not any("client_secret" in form for form in forms)
    assert secret not in str(provider.requests)


def test_a_short_secret_signs_nothing() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        OIDC("https://login.example.com", "app", "short", token_endpoint_auth_method="client_secret_jwt")


@pytest.mark.parametrize(
    ("nonce", "is_required", "is_accepted"),
    [
        ("nonce", False, True),
        (None, False, True),
        ("another", False, False),
        ("", False, False),
        (5, False, False),
        (None, True, False),
    ],
)
async def test_a_provider_may_leave_out_the_nonce_if_the_author_says_so(
    provider: Provider, nonce: object, *, is_required: bool, is_accepted: bool
) -> None:
    token = provider.id_token(nonce=nonce) if nonce is not None else sign_without_nonce(provider)
    provider.answers["/token"] = 200, {"id_token": token}
    oidc = upstream(provider, requires_nonce=is_required)
    assert "nonce=nonce" in await oidc.authorization_url(REQUEST)
    if is_accepted:
        assert (await exchange(oidc)).user.subject == "ada"
    else:
        with pytest.raises(UpstreamRefusedError):
            await exchange(oidc)


@pytest.mark.parametrize(
    ("status", "body", "level", "reason"),
    [
        (404, b"{}", "ERROR", "status 404)"),
        (400, {"error": "invalid_tenant", "error_description": "AADSTS90002"}, "ERROR", "'AADSTS90002'"),
        (302, b"", "ERROR", "status 302"),
        (200, b"<html>", "ERROR", "not JSON"),
        (200, b"[]", "ERROR", "not a JSON object"),
        (200, {"issuer": "https://evil.example.com\r\nforged"}, "ERROR", "configure that one"),
        (500, b"{}", "WARNING", "status 500"),
        (503, b"<html>", "WARNING", "status 503"),
        (429, b"{}", "WARNING", "status 429"),
    ],
)
async def test_the_check_says_what_is_wrong_and_raises_nothing(
    provider: Provider, status: int, body: Any, level: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    provider.answers["/.well-known/openid-configuration"] = status, body
    await upstream(provider).check()
    [record] = caplog.records
    assert record.levelname == level
    assert reason in record.getMessage()
    assert record.getMessage().isprintable()


async def test_a_good_provider_has_no_line_and_is_known_after_the_check(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    oidc = upstream(provider)
    await oidc.check()
    await oidc.authorization_url(REQUEST)
    assert (len(provider.requests), caplog.records) == (1, [])


@pytest.mark.parametrize(
    ("algorithms", "is_named"),
    [(["HS256"], True), (["HS256", "ES256"], False), (["RS256"], False), ("x", False), ([], False)],
)
async def test_a_provider_that_signs_with_a_shared_secret_only_is_named_at_the_start(
    provider: Provider, algorithms: Any, is_named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    provider.document["id_token_signing_alg_values_supported"] = algorithms
    await upstream(provider).check()
    assert ("Authentik: choose a signing key" in caplog.text) == is_named
    assert ("it offers HS256" in caplog.text) == is_named


async def test_while_another_event_loop_asks_for_the_document_it_is_an_outage(provider: Provider) -> None:
    oidc = upstream(provider)
    other = asyncio.new_event_loop()
    try:
        oidc._discovering = other.create_future()  # type: ignore[assignment]
        oidc._next_discovery = float("inf")
        with pytest.raises(UpstreamUnavailableError, match="is being requested"):
            await oidc.authorization_url(REQUEST)
    finally:
        other.close()


@pytest.mark.parametrize("path", ["openid-configuration", "oauth-authorization-server", "x"])
def test_the_url_of_the_document_is_not_an_issuer(path: str) -> None:
    with pytest.raises(ValueError, match=r"Write OIDC\('https://idp\.example\.com/realm', \.\.\.\), or the issuer"):
        OIDC(f"https://idp.example.com/realm/.well-known/{path}", "app")
