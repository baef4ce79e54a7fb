"""Identity assertions (ID-JAG): which ones are valid, and what a client gets for one."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest

from funcmcp._auth.tokens.compact import TokenError
from funcmcp._oauth_proxy.identity_assertions import ASSERTION_GRANT, IdentityAssertion, assertion_of, validated
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError
from funcmcp.auth import GitHub, StaticKeys, User
from funcmcp.state import MemorySignIns
from tests.auth.making_tokens import ISSUER as IDP
from tests.auth.making_tokens import NOW, key, public, sign
from tests.oauth_proxy.stage import ISSUER, URL, Answer, ScriptedUpstream, Stage, claims_of

GOOD = {
    "iss": IDP,
    "aud": ISSUER,
    "sub": "ada",
    "client_id": "https://claude.ai/client.json",
    "jti": "one",
    "exp": NOW + 300,
    "iat": NOW,
    "resource": URL,
    "scope": "orders.read orders.write",
}


def assertion(header: dict[str, object] | None = None, **changes: Any) -> str:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    return sign(claims, header={"typ": "oauth-id-jag+jwt"} | (header or {}))


async def validate(text: str, now: float = NOW) -> dict[str, Any]:
    keys = StaticKeys(public())
    return await validated(text, issuer=IDP, audience=ISSUER, resource=URL, keys=keys, now=now)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": [ISSUER]},
        {"resource": None},
        {"resource": f"{URL}/"},
        {"resource": [URL]},
        {"nbf": NOW},
        {"exp": NOW - 30, "iat": NOW - 300},
        {"iat": NOW + 30},
    ],
)
async def test_an_assertion_for_this_server_is_valid(changes: dict[str, Any]) -> None:
    assert (await validate(assertion(**changes)))["sub"] == "ada"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"aud": "https://other.example.com"}, "another server"),
        ({"aud": [ISSUER, "https://other.example.com"]}, "another server"),
        ({"aud": f"{ISSUER}/"}, "another server"),
        ({"aud": None}, "another server"),
        ({"resource": "https://other.example.com/mcp"}, "another resource"),
        ({"resource": [URL, "https://other.example.com/mcp"]}, "another resource"),
        ({"resource": []}, "another resource"),
        ({"resource": 5}, "another resource"),
        ({"sub": None}, "no sub"),
        ({"sub": ""}, "no sub"),
        ({"jti": None}, "no jti"),
        ({"jti": "x" * 513}, "no jti"),
        ({"client_id": 5}, "no client_id"),
        ({"exp": None}, "no expiry"),
        ({"iat": None}, "no expiry"),
        ({"exp": True}, "no expiry"),
        ({"exp": NOW - 60, "iat": NOW - 300}, "expired"),
        ({"iat": NOW + 61}, "in the future"),
        ({"exp": NOW + 3601}, "more than 3600 seconds"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"nbf": "now"}, "not valid yet"),
    ],
)
async def test_an_assertion_with_other_claims_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenError, match=message):
        await validate(assertion(**changes))


@pytest.mark.parametrize("kind", [None, "JWT", "at+jwt", "oauth-id-jag"])
async def test_a_token_of_another_type_is_not_an_assertion(kind: str | None) -> None:
    with pytest.raises(TokenError, match="another type"):
        await validate(assertion({"typ": kind}))


async def test_a_forged_assertion_is_refused() -> None:
    forged = sign(GOOD, signer=key("RSA", "second"), header={"typ": "oauth-id-jag+jwt"})
    with pytest.raises(TokenError, match="signature"):
        await validate(forged)
    shared = sign(GOOD, signer=key("oct"), algorithm="HS256", header={"typ": "oauth-id-jag+jwt"})
    with pytest.raises(TokenError, match="algorithm"):
        await validate(shared)
    for text in ("", "a.b.c", "x" * 20_000):
        with pytest.raises(TokenError):
            await validate(text)


@pytest.mark.parametrize(
    ("changes", "scopes", "signed_in"),
    [
        ({}, ("orders.read", "orders.write"), NOW),
        ({"scope": None, "auth_time": NOW - 5000}, (), NOW - 5000),
        ({"scope": ["orders.read"], "auth_time": NOW + 5000}, (), NOW),
        ({"scope": "", "auth_time": "today"}, (), NOW),
    ],
)
def test_an_assertion_says_what_the_provider_allows(
    changes: dict[str, Any], scopes: tuple[str, ...], signed_in: float
) -> None:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    read = assertion_of(claims, User("ada"), NOW)
    assert (read.scopes, read.signed_in, read.seconds) == (scopes, signed_in, 360)
    assert read.unique == f"{IDP} ada one"


# At the token endpoint

CLAUDE = "https://claude.ai/client.json"
SECRET = "a secret: with +, % and &"


class AssertingUpstream(ScriptedUpstream):
    """An identity provider that issues identity assertions."""

    async def identity_assertion(self, assertion: str, audience: str, resource: str) -> IdentityAssertion:
        self._fail()
        try:
            claims = await validate(assertion)
        except TokenError as error:
            raise UpstreamRefusedError(str(error)) from error
        assert (audience, resource) == (ISSUER, URL)
        return assertion_of(claims, User(claims["sub"], name=claims.get("name")), NOW)


def stage(**options: Any) -> Stage:
    upstream = AssertingUpstream()
    clients = {CLAUDE: None, "agent": SECRET}
    staged = Stage(upstream=upstream, store=MemorySignIns(), identity_assertions=clients, **options)
    staged.upstream = upstream
    return staged


async def bring(staged: Stage, text: str, *, authorization: str | None = None, **fields: Any) -> Answer:
    values = {"grant_type": ASSERTION_GRANT, "assertion": text, "client_id": CLAUDE, "resource": URL} | fields
    form = urlencode({name: value for name, value in values.items() if value is not None})
    headers = {"content-type": "application/x-www-form-urlencoded"}
    if authorization is not None:
        headers["authorization"] = authorization
    return await staged.send("POST", "/oauth/token", body=form.encode(), headers=headers)


def basic(client_id: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{quote_plus(client_id)}:{quote_plus(secret)}'.encode()).decode()}"


async def test_a_client_gets_an_access_token_and_no_refresh_token() -> None:
    staged = stage()
    answer = await bring(staged, assertion(name="Ada", auth_time=NOW - 100))
    assert (answer.status, set(answer.json)) == (200, {"access_token", "token_type", "expires_in", "scope"})
    assert answer.json["scope"] == "orders.read orders.write"
    claims = claims_of(answer.json["access_token"])
    assert (claims["aud"], claims["client_id"], claims["auth_time"]) == (URL, CLAUDE, NOW - 100)
    principal = await staged.caller_of(answer.json["access_token"])
    assert (principal.subject, principal.name, principal.client_id) == ("ada", "Ada", CLAUDE)
    assert answer.header("cache-control") == "no-store"


async def test_of_many_uses_of_an_assertion_at_once_one_succeeds() -> None:
    staged = stage()
    text = assertion()
    answers = await asyncio.gather(*(bring(staged, text) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [200, *[400] * 19]
    assert {answer.json["error"] for answer in answers if answer.status == 400} == {"invalid_grant"}
    staged.clock.now += 359  # it is remembered for as long as it is valid
    assert (await bring(staged, text)).status != 200
    assert (await bring(stage(), assertion(jti="two"))).status == 200


async def test_a_mistake_does_not_use_an_assertion_up() -> None:
    staged = stage(allow=lambda user: user.name == "Ada")
    text = assertion()
    assert (await bring(staged, text)).json["error"] == "invalid_grant"
    staged.proxy = staged.instance(allow=lambda user: ["orders.read"])
    assert (await bring(staged, text, scope="orders.read")).json["error"] == "invalid_scope"
    assert (await bring(staged, text, resource="https://other.example.com")).json["error"] == "invalid_target"
    answer = await bring(staged, text, scope="orders.read orders.write openid")
    assert (answer.status, answer.json["scope"]) == (200, "orders.read")


async def test_a_client_with_a_secret_sends_it_in_one_of_two_ways() -> None:
    staged = stage()
    texts = [assertion(client_id="agent", jti=str(number)) for number in range(9)]
    good = basic("agent", SECRET)
    assert (await bring(staged, texts[0], client_id="agent", client_secret=SECRET)).status == 200
    assert (await bring(staged, texts[1], client_id="agent", authorization=good)).status == 200
    assert (await bring(staged, texts[2], client_id=None, authorization=good)).status == 200
    for fields in (
        {"client_id": "agent"},
        {"client_id": "agent", "client_secret": "another secret"},
        {"client_id": "agent", "authorization": basic("agent", "another secret")},
        {"client_id": CLAUDE, "authorization": good},
        {"client_id": "agent", "authorization": "Bearer x"},
        {"client_id": "agent", "authorization": "Basic %"},
        {"client_id": CLAUDE, "client_secret": SECRET},
        {"client_id": "unknown"},
        {"client_id": None},
    ):
        answer = await bring(staged, texts[3], **fields)
        assert (answer.status, answer.json["error"]) == (401, "invalid_client"), fields
        assert (answer.header("www-authenticate") is not None) == ("authorization" in fields)
    twice = await bring(staged, texts[3], client_id="agent", client_secret=SECRET, authorization=good)
    assert twice.json["error"] == "invalid_request"


@pytest.mark.parametrize(
    "changes", [{"client_id": "agent"}, {"scope": None}, {"scope": "orders.read admin"}, {"aud": "https://x.example"}]
)
async def test_an_assertion_for_another_client_or_other_scopes_is_refused(changes: dict[str, Any]) -> None:
    answer = await bring(stage(), assertion(**changes))
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


async def test_other_clients_and_servers_without_the_option_have_no_such_grant() -> None:
    registered = await stage().with_client()
    own = assertion(client_id=registered.client_id)
    answer = await bring(registered, own, client_id=registered.client_id)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    without = await Stage(store=MemorySignIns()).with_client()
    answer = await bring(without, own, client_id=without.client_id)
    assert answer.json["error"] == "unsupported_grant_type"
    metadata = (await without.send("GET", "/.well-known/oauth-authorization-server")).json
    assert "authorization_grant_profiles_supported" not in metadata


async def test_the_metadata_say_what_clients_look_for() -> None:
    metadata = (await stage().send("GET", "/.well-known/oauth-authorization-server")).json
    assert metadata["authorization_grant_profiles_supported"] == ["urn:ietf:params:oauth:grant-profile:id-jag"]
    assert metadata["grant_types_supported"][-1] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert metadata["token_endpoint_auth_methods_supported"] == ["none", "client_secret_basic", "client_secret_post"]


async def test_an_outage_of_the_provider_uses_nothing_up() -> None:
    staged = stage()
    text = assertion()
    staged.upstream.down = UpstreamUnavailableError("no route to host")
    assert (await bring(staged, text)).status == 503
    staged.upstream.down = None
    assert (await bring(staged, text)).status == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"identity_assertions": {CLAUDE: None}, "store": None}, "needs a store"),
        ({"identity_assertions": {}}, "needs the ids"),
        ({"identity_assertions": {"": None}}, "needs the ids"),
        ({"identity_assertions": {"agent": "short"}}, "at least 16 characters"),
        (
            {"identity_assertions": {CLAUDE: None}, "upstream": GitHub("id", "secret", organizations=None)},
            "GitHub issues no identity assertions",
        ),
    ],
)
def test_an_invalid_configuration_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stage(**{"upstream": AssertingUpstream(), "store": MemorySignIns()} | options)
