"""Introspection: which answers of an issuer make a token valid, what is remembered, and what an attacker can cause."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

import pytest

from funcmcp._auth.authenticator import Challenge, Fit, UnavailableError, first_of
from funcmcp._auth.principal import Principal
from funcmcp.auth import APIKeys, Auth, BearerTokens, Introspection, ProtectedResource, StaticKeys, TokenRules
from funcmcp.client import PrivateKeyJWT
from tests.auth.issuer import certificate
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, bearing, claims, key, public, sign
from tests.oauth_proxy.stage import claims_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from joserfc.jwk import ECKey

    from funcmcp.auth import Authenticator

URL = f"{ISSUER}/introspect"
ACTIVE: dict[str, Any] = {"active": True, "sub": "ada", "aud": AUDIENCE, "client_id": "app", "exp": NOW + 600}
ENTRIES = 4096


class Scripted(Introspection):
    """An introspection whose issuer is in this process.

    Attributes:
        answers: The answers by token; bytes, a dict, or an exception.
        asked: The tokens that the issuer has got.
        gate: Answers wait for it.
    """

    def __init__(self, answers: dict[str, Any] | None = None, **options: Any) -> None:
        defaults = {"issuer": ISSUER, "audience": AUDIENCE, "client_id": "orders", "client_secret": "secret"}
        super().__init__(URL, **defaults | options)
        self.answers = answers or {}
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def _post(self, token: str) -> bytes:
        self.asked.append(token)
        await self.gate.wait()
        answer = self.answers.get(token, {"active": False})
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


def scripted(clock: Clock | None = None, options: dict[str, Any] | None = None, **changes: Any) -> Scripted:
    """Return an introspection whose issuer knows one token."""
    answer = {name: value for name, value in (ACTIVE | changes).items() if value is not ...}
    return Scripted({"opaque": answer}, clock=clock or Clock(), **options or {})


async def identity_of(introspection: Introspection, token: str = "opaque") -> Principal | Challenge | None:
    return await introspection(bearing(token))


async def refusal(introspection: Introspection, token: str = "opaque") -> str:
    identity = await identity_of(introspection, token)
    assert isinstance(identity, Challenge), identity
    assert identity.error == "invalid_token"
    return identity.description


async def test_an_active_token_names_its_caller() -> None:
    introspection = scripted(scope="orders.read orders.write", username="Ada L.", roles=["cook"])
    principal = await identity_of(introspection)
    assert isinstance(principal, Principal)
    assert (principal.subject, principal.issuer, principal.client_id, principal.name) == (
        "ada",
        ISSUER,
        "app",
        "Ada L.",
    )
    assert (sorted(principal.scopes), sorted(principal.roles)) == (["orders.read", "orders.write"], ["cook"])
    assert principal.verified_token is not None
    assert principal.verified_token.reveal() == "opaque"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"exp": ...},
        {"exp": None},
        {"iss": None},
        {"iss": ISSUER},
        {"aud": ["x", f"{AUDIENCE}/"]},
        {"token_type": "Bearer"},
        {"token_type": "access_token"},
        {"token_use": "access_token"},
        {"typ": "Bearer"},
        {"nbf": NOW - 5, "iat": NOW - 5},
        {"exp": NOW - 30},  # within the leeway
        {"username": 5},
    ],
)
async def test_what_an_issuer_may_say_about_a_valid_token(changes: dict[str, Any]) -> None:
    assert isinstance(await identity_of(scripted(**changes)), Principal)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"active": False}, "not active"),
        ({"iss": "https://evil.example.com"}, "does not accept the issuer"),
        ({"iss": f"{ISSUER}/"}, "does not accept the issuer"),
        ({"iss": [ISSUER]}, "does not accept the issuer"),
        ({"aud": ...}, "no audience"),
        ({"aud": "https://other.example.com"}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"aud": {"a": AUDIENCE}}, "no audience"),
        ({"exp": NOW - 100}, "expired"),
        ({"exp": str(NOW + 100)}, "not a number"),
        ({"nbf": NOW + 100}, "not valid yet"),
        ({"sub": ...}, "no subject"),
        ({"sub": 5}, "no subject"),
        ({"sub": ""}, "no subject"),
        ({"scope": 5}, "neither a string nor a list"),
        ({"token_type": "refresh_token"}, "not an access token"),
        ({"token_type": "Refresh"}, "not an access token"),
        ({"token_use": "refresh_token"}, "not an access token"),
        ({"token_use": ["access"]}, "not an access token"),
        ({"typ": "Refresh"}, "not an access token"),
        ({"typ": "Offline"}, "not an access token"),
        ({"typ": "ID"}, "not an access token"),
        ({"nonce": "n"}, "is an ID token"),
        ({"token_type": "DPoP"}, "bound to a key"),
        ({"cnf": "x"}, "malformed"),
        ({"cnf": {"jkt": 5}}, "malformed"),
        ({"cnf": {"jkt": "thumbprint"}}, "can't be a bearer token"),
    ],
)
async def test_an_answer_that_does_not_fit_makes_no_token_valid(changes: dict[str, Any], text: str) -> None:
    introspection = scripted(**changes)
    assert text in await refusal(introspection)
    assert introspection.recall(b"") is None


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"null",
        b"[]",
        b'"active"',
        b"true",
        b"{}",
        b"<html>active</html>",
        b"\xff\xfe",
        b"[" * 100_000,
        {"active": "true", "sub": "ada"},
        {"active": 1, "sub": "ada"},
        {"active": None, "sub": "ada"},
        {"active": [True], "sub": "ada"},
        {"Active": True, "sub": "ada"},
        b'{"active": false, "active": true',
        OSError("secret"),
        TimeoutError(),
        RuntimeError("secret"),
    ],
)
async def test_an_answer_that_is_not_usable_neither_accepts_nor_refuses_the_token(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    introspection = Scripted({"opaque": answer}, clock=Clock())
    for _ in range(2):
        with pytest.raises(UnavailableError, match="can't be reached") as error:
            await identity_of(introspection)
        assert error.value.retry_after == 5
    assert len(introspection.asked) == 2  # an outage is not remembered as a refusal
    assert len(caplog.messages) == 1  # a stranger who sends many tokens does not fill the log
    assert caplog.messages[0].startswith(f"event=introspection_failed url={URL} reason=")
    assert "secret" not in caplog.text
    assert "opaque" not in caplog.text
    introspection.answers["opaque"] = ACTIVE
    assert isinstance(await identity_of(introspection), Principal)


@pytest.mark.parametrize("token", ["é", "a\x00b", "\x7f", "A" * 16_385, "\ud800", "a\u2028b"])
async def test_a_token_that_no_issuer_has_written_is_not_sent(token: str) -> None:
    introspection = scripted()
    assert "characters" in await refusal(introspection, token)
    assert introspection.asked == []


async def test_a_valid_token_is_asked_for_again_after_the_time_of_the_cache() -> None:
    clock = Clock()
    introspection = scripted(clock)
    for seconds, count in ((0, 1), (59, 1), (2, 2), (59, 2)):
        clock.now += seconds
        assert isinstance(await identity_of(introspection), Principal)
        assert len(introspection.asked) == count


@pytest.mark.parametrize(("seconds", "count"), [(0, 3), (1, 1)])
async def test_the_time_of_the_cache_is_an_option(seconds: float, count: int) -> None:
    introspection = scripted(options={"cache_seconds": seconds})
    for _ in range(3):
        assert isinstance(await identity_of(introspection), Principal)
    assert len(introspection.asked) == count


async def test_a_token_is_not_cached_longer_than_it_is_valid() -> None:
    clock = Clock()
    introspection = scripted(clock, exp=NOW + 10)
    await identity_of(introspection)
    clock.now += 10
    introspection.answers["opaque"] = {"active": False}
    assert "not active" in await refusal(introspection)


async def test_a_revoked_token_is_refused_when_the_cache_ends_and_not_accepted_during_an_outage() -> None:
    clock = Clock()
    introspection = scripted(clock)
    await identity_of(introspection)
    introspection.answers["opaque"] = OSError()
    clock.now += 61
    with pytest.raises(UnavailableError):
        await identity_of(introspection)
    introspection.answers["opaque"] = {"active": False}
    assert "not active" in await refusal(introspection)


async def test_a_refused_token_is_not_asked_for_again_for_ten_seconds() -> None:
    clock = Clock()
    introspection = scripted(clock, active=False)
    for _ in range(3):
        await refusal(introspection)
    assert len(introspection.asked) == 1
    clock.now += 10
    introspection.answers["opaque"] = ACTIVE
    assert isinstance(await identity_of(introspection), Principal)


async def test_thousands_of_invalid_tokens_displace_no_valid_one_and_are_bounded() -> None:
    introspection = scripted()
    await identity_of(introspection)
    for number in range(ENTRIES + 10):
        await refusal(introspection, f"guess-{number}")
    assert len(introspection._refused) == ENTRIES
    asked = len(introspection.asked)
    assert isinstance(await identity_of(introspection), Principal)
    assert len(introspection.asked) == asked


async def test_requests_with_one_token_share_one_request_to_the_issuer() -> None:
    introspection = scripted()
    introspection.gate.clear()
    callers = [asyncio.create_task(identity_of(introspection)) for _ in range(5)]
    await asyncio.sleep(0)
    callers[0].cancel()
    introspection.gate.set()
    identities = await asyncio.gather(*callers[1:])
    assert all(isinstance(identity, Principal) for identity in identities)
    assert introspection.asked == ["opaque"]


async def test_a_hundred_tokens_are_checked_at_once_and_no_more() -> None:
    introspection = scripted()
    introspection.gate.clear()
    guesses = [asyncio.create_task(identity_of(introspection, f"guess-{number}")) for number in range(100)]
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError, match="too many tokens"):
        await identity_of(introspection)
    introspection.gate.set()
    await asyncio.gather(*guesses)
    assert isinstance(await identity_of(introspection), Principal)


def test_a_request_of_a_loop_that_has_ended_holds_up_no_other_loop() -> None:
    introspection = scripted()

    async def cancelled() -> None:
        introspection.gate = asyncio.Event()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(identity_of(introspection), 0.01)

    async def again() -> None:
        introspection.gate.set()
        assert isinstance(await identity_of(introspection), Principal)

    asyncio.run(cancelled())
    asyncio.run(again())


async def test_a_token_of_another_issuer_is_never_sent_to_this_one() -> None:
    introspection = scripted()
    assert "issuer" in await refusal(introspection, sign(claims(iss="https://other.example.com")))
    assert "issuer" in await refusal(introspection, sign(claims(iss=["x"])))
    assert introspection.asked == []
    signed = sign(claims())
    introspection.answers[signed] = ACTIVE
    assert isinstance(await identity_of(introspection, signed), Principal)


async def test_beside_others_only_its_own_tokens_are_sent_and_each_one_gets_its_reason() -> None:
    other = "https://other.example.com"
    signed = BearerTokens(other, AUDIENCE, keys=StaticKeys(public()), clock=Clock())
    keys = APIKeys({"bob": "a-key-of-bob-with-many-characters"}, header="authorization")
    for step in (1, -1):
        introspection = scripted()
        parts: list[Authenticator] = [introspection, signed, keys]
        authenticator = first_of(*parts[::step])
        assert isinstance(await authenticator(bearing("opaque")), Principal)
        assert isinstance(await authenticator(bearing("a-key-of-bob-with-many-characters")), Principal)
        assert isinstance(await authenticator(bearing(sign(claims(iss=other)))), Principal)
        assert introspection.asked == ["opaque"]
        expired = await authenticator(bearing(sign(claims(iss=other, exp=NOW - 100))))
        assert expired == Challenge("invalid_token", "The token has expired.")
        unknown = await authenticator(bearing("unknown-token"))
        text = "The API key is not known. The token is not active: it is unknown, expired or revoked."
        assert unknown == Challenge("invalid_token", text)


def test_an_opaque_token_fits() -> None:
    introspection = scripted()
    assert introspection.fit(bearing("opaque")) == Fit.KIND
    assert introspection.fit({}) == introspection.fit(bearing("é")) == Fit.NONE
    assert introspection.fit(bearing(sign(claims()))) == Fit.AUDIENCE


async def test_tokens_without_an_audience_count_only_where_the_operator_says_so() -> None:
    assert isinstance(await identity_of(scripted(options={"audience": None}, aud=...)), Principal)
    rules = TokenRules(clients_without_audience=["app"])
    assert isinstance(await identity_of(scripted(options={"rules": rules}, aud=...)), Principal)
    assert "another client" in await refusal(scripted(options={"rules": rules}, aud=..., client_id="evil"))


async def test_a_bound_token_needs_a_proof() -> None:
    introspection = scripted(options={"dpop": "required"}, cnf={"jkt": "thumbprint"}, token_type="DPoP")
    identity = await introspection({"authorization": "DPoP opaque"})
    assert isinstance(identity, Challenge)
    assert identity.error == "invalid_dpop_proof"
    auth = Auth(introspection, ProtectedResource(resource=AUDIENCE, authorization_servers=[ISSUER]))
    assert auth.resource is not None
    assert auth.resource.dpop == "required"


GOOD: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE, "client_id": "orders", "client_secret": "secret"}


@pytest.mark.parametrize(
    ("url", "changes", "text"),
    [
        ("http://login.example.com/introspect", {}, "https"),
        ("https://user@login.example.com/introspect", {}, "user name"),
        ("login.example.com", {}, "absolute URL"),
        (URL, {"issuer": ""}, "issuer"),
        (URL, {"audience": ""}, "audience"),
        (URL, {"audience": []}, "audience"),
        (URL, {"client_id": ""}, "client_id"),
        (URL, {"client_secret": None}, "either client_secret or credential"),
        (URL, {"client_secret": ""}, "either client_secret or credential"),
        (URL, {"credential": object()}, "either client_secret or credential"),
        (URL, {"auth_method": "none"}, "auth_method"),
        (URL, {"cache_seconds": -1}, "cache_seconds"),
        (URL, {"cache_seconds": 301}, "cache_seconds"),
        (URL, {"cache_seconds": float("nan")}, "cache_seconds"),
        (URL, {"dpop": "maybe"}, "dpop"),
        (URL, {"ca_file": "/missing.pem"}, "ca_file"),
    ],
)
def test_a_configuration_that_can_not_work_is_a_mistake(url: str, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Introspection(url, **GOOD | changes)


class Server:
    """An introspection endpoint on this machine.

    Attributes:
        url: Its URL.
        requests: The heads and the forms that came.
        status: The status line's code and reason.
        body: The body of each answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.status = "200 OK"
        self.body = json.dumps(ACTIVE).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
        form = dict(parse_qsl((await reader.readexactly(length)).decode()))
        self.requests.append((head, form))
        fields = f"Content-Length: {len(self.body)}\r\nLocation: {self.url}2\r\nConnection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 {self.status}\r\n{fields}".encode() + self.body)
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/introspect"
    try:
        yield server
    finally:
        listening.close()


async def test_the_token_is_sent_in_a_form_with_the_credentials_of_the_server() -> None:
    async with serving() as server:
        basic = Introspection(server.url, **GOOD | {"client_secret": "a:b c%"}, clock=Clock())
        assert isinstance(await identity_of(basic), Principal)
        await identity_of(basic)
        head, form = server.requests.pop()
        assert not server.requests
        assert form == {"token": "opaque", "token_type_hint": "access_token"}
        expected = base64.b64encode(b"orders:a%3Ab+c%25").decode()
        assert f"Basic {expected}" in head
        assert "accept-encoding: identity" in head.lower()
        post = Introspection(server.url, **GOOD, auth_method="client_secret_post", clock=Clock())
        await identity_of(post, "another")
        await identity_of(post)
        head, form = server.requests.pop()
        assert "authorization:" not in head.lower()
        assert (form["client_id"], form["client_secret"]) == ("orders", "secret")
        pem = cast("ECKey", key("P-256")).as_pem(private=True)
        signing = Introspection(
            server.url, **GOOD | {"client_secret": None, "credential": PrivateKeyJWT(pem)}, clock=Clock()
        )
        assert isinstance(await identity_of(signing), Principal)
        head, form = server.requests.pop()
        assert form["client_assertion_type"].endswith(":jwt-bearer")
        statement = claims_of(form["client_assertion"])
        assert (statement["iss"], statement["sub"], statement["aud"]) == ("orders", "orders", ISSUER)
        assert "authorization:" not in head.lower()


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        ("401 Unauthorized", b"{}", "status 401: check the client id and its secret"),
        ("400 Bad Request", b'{"active": true}', "status 400: check the client id and its secret"),
        ("302 Found", b"", "status 302"),
        ("204 No Content", b"", "status 204"),
        ("500 Oops", json.dumps(ACTIVE).encode(), "status 500"),
        ("200 OK", b" " * 300_000, "the answer is too large"),
        ("200 OK", b"\x1f\x8b", "the answer is not JSON"),
    ],
)
async def test_the_log_says_why_the_issuer_is_of_no_use(
    status: str, body: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as server:
        server.status, server.body = status, body
        with pytest.raises(UnavailableError):
            await identity_of(Introspection(server.url, **GOOD, clock=Clock()))
        assert caplog.messages == [f"event=introspection_failed url={server.url} reason={reason}"]
        assert caplog.records[0].levelname == ("ERROR" if "check" in reason else "WARNING")
        assert len(server.requests) == 1  # a redirect is not followed


async def test_an_issuer_with_a_private_authority_is_trusted_by_its_file(tmp_path: Path) -> None:
    introspection = Introspection(URL, **GOOD, ca_file=certificate(tmp_path))
    assert introspection._ca_file is not None


async def test_the_log_says_that_nothing_listens(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as server:
        url = server.url
    with pytest.raises(UnavailableError):
        await identity_of(Introspection(url, **GOOD, clock=Clock()))
    assert "the connection is refused" in caplog.text


def test_a_host_without_tls_has_to_be_named(caplog: pytest.LogCaptureFixture) -> None:
    Introspection("http://keycloak:8080/introspect", **GOOD, insecure_hosts=["keycloak:8080"])
    assert "Introspection.insecure_hosts" in caplog.text
    for hosts, error in ((["other:8080"], ValueError), ("keycloak:8080", TypeError)):
        with pytest.raises(error):
            Introspection("http://keycloak:8080/introspect", **GOOD, insecure_hosts=hosts)
