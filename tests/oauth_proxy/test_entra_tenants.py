"""Entra ID for several tenants, against a script of our own: which tenants sign in, and with whose keys and tokens."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp._oauth_proxy import entra as entra_module
from funcmcp.auth import (
    AuthorizationRequest,
    ClientCertificate,
    EntraID,
    StaticKeys,
    UpstreamRefusedError,
    UpstreamUnavailableError,
)
from tests.auth.making_tokens import NOW, Clock, key, public, sign
from tests.oauth_proxy.scripted import APP, TENANT, ScriptedHTTP
from tests.oauth_proxy.stage import Browser, Stage
from tests.oauth_proxy.test_certificates import pem

AUTHORITY = "https://login.microsoftonline.com"
TEMPLATE = f"{AUTHORITY}/{{tenantid}}/v2.0"
OTHER = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")
TASKS = "https://tasks.example.com/Tasks.Read"


class Organizations(ScriptedHTTP):
    """The endpoints of ``organizations``, with users of any tenant.

    Attributes:
        claims: Claims of ID tokens.
        header: The header of ID tokens.
        access_token: The access token of a sign-in.
    """

    def __init__(self, **claims: Any) -> None:
        super().__init__()
        self.claims = claims
        self.header: dict[str, Any] = {}
        self.signer = key()
        self.access_token = sign({"aud": APP, "tid": TENANT})

    def id_token(self) -> str:
        tenant = self.claims.get("tid", TENANT)
        good = {
            "iss": f"{AUTHORITY}/{tenant}/v2.0",
            "aud": APP,
            "tid": TENANT,
            "oid": "ada-object",
            "sub": "per application",
            "name": "Ada",
            "nonce": "nonce",
            "iat": NOW,
            "exp": NOW + 3600,
        }
        claims = {name: value for name, value in (good | self.claims).items() if value is not None}
        return sign(claims, header=self.header, signer=self.signer)

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if url == f"{AUTHORITY}/organizations/v2.0/.well-known/openid-configuration":
            base = f"{AUTHORITY}/organizations/oauth2/v2.0"
            return 200, {
                "issuer": TEMPLATE,
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "jwks_uri": "http://127.0.0.1:1/keys",
            }
        tokens = {"id_token": self.id_token(), "access_token": self.access_token, "refresh_token": "again"}
        return 200, tokens | {"token_type": "Bearer", "expires_in": 3600}


def entra(script: Organizations, keys: StaticKeys | None = None, **options: Any) -> EntraID:
    defaults: dict[str, Any] = {"client_secret": "s", "tenants": [TENANT, OTHER], "clock": Clock()}
    upstream = EntraID("organizations", APP, **defaults | options)
    upstream._http = script
    upstream._keys = "http://127.0.0.1:1/keys", keys or StaticKeys(public())  # type: ignore[assignment]
    return upstream


async def exchange(upstream: EntraID) -> Any:
    return await upstream.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


@pytest.mark.parametrize("tenant", [TENANT, OTHER])
async def test_users_of_the_allowed_tenants_sign_in_and_are_named_by_their_tenant(tenant: str) -> None:
    upstream = entra(Organizations(tid=tenant))
    user = (await exchange(upstream)).user
    assert (user.subject, user.tenant) == (f"{tenant}.ada-object", tenant)
    assert (await upstream.refresh("again", f"{tenant}.ada-object")).user == user
    url = await upstream.authorization_url(REQUEST)
    assert url.startswith(f"{AUTHORITY}/organizations/oauth2/v2.0/authorize?")


async def decide(tenant: str) -> bool:
    return tenant == TENANT


@pytest.mark.parametrize("tenants", [[TENANT.upper()], lambda tenant: tenant == TENANT, decide])
async def test_a_list_or_a_function_decides_which_tenants_sign_in(tenants: Any) -> None:
    assert (await exchange(entra(Organizations(), tenants=tenants))).user.tenant == TENANT
    with pytest.raises(UpstreamRefusedError, match=rf"does not allow the tenant of the user\. \({OTHER}\)") as caught:
        await exchange(entra(Organizations(tid=OTHER), tenants=tenants))
    assert "Your organization may not use this server" in str(caught.value.advice)


@pytest.mark.parametrize("answer", [1, "yes", [True], None, {"allowed": True}])
async def test_a_function_allows_with_true_only(answer: object) -> None:
    with pytest.raises(UpstreamRefusedError):
        await exchange(entra(Organizations(), tenants=lambda tenant: answer))


async def test_a_function_that_fails_is_an_outage_with_its_reason() -> None:
    with pytest.raises(UpstreamUnavailableError, match=r"tenants_failed: .*ZeroDivisionError"):
        await exchange(entra(Organizations(), tenants=lambda tenant: 1 // 0 == 0))


async def test_a_function_that_hangs_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(tenant: str) -> bool:
        await asyncio.sleep(600)
        return bool(tenant)

    monkeypatch.setattr(entra_module, "_TENANTS_SECONDS", 0.01)
    with pytest.raises(UpstreamUnavailableError, match=r"tenants_failed: .*TimeoutError"):
        await exchange(entra(Organizations(), tenants=hangs))


async def test_a_tenant_that_is_not_allowed_any_more_ends_at_the_refresh() -> None:
    allowed = {TENANT}
    upstream = entra(Organizations(), tenants=lambda tenant: tenant in allowed)
    await exchange(upstream)
    allowed.clear()
    with pytest.raises(UpstreamRefusedError):
        await upstream.refresh("again", f"{TENANT}.ada-object")


@pytest.mark.parametrize(
    "claims",
    [
        {"tid": OTHER, "iss": f"{AUTHORITY}/{TENANT}/v2.0"},
        {"tid": TENANT, "iss": f"{AUTHORITY}/{OTHER}/v2.0"},
        {"iss": TEMPLATE},
        {"iss": f"{AUTHORITY}/organizations/v2.0"},
        {"iss": f"https://sts.windows.net/{TENANT}/"},
        {"iss": f"https://evil.example.com/{TENANT}/v2.0"},
        {"tid": None, "iss": TEMPLATE},
        {"tid": "{tenantid}"},
        {"tid": ""},
        {"tid": 5},
        {"tid": [TENANT]},
        {"tid": f"{TENANT}/../{OTHER}"},
        {"tid": f"{{{TENANT}}}"},
        {"tid": OTHER.upper(), "iss": f"{AUTHORITY}/{OTHER}/v2.0"},
        {"tid": "9188040d-6c67-4c5b-b112-36a304b66dad"},  # personal accounts
        {"aud": OTHER},
        {"nonce": "another"},
        {"exp": NOW - 100},
        {"oid": None},
    ],
)
async def test_a_token_of_another_tenant_or_with_a_mixed_issuer_is_refused(claims: dict[str, Any]) -> None:
    asked: list[str] = []

    def tenants(tenant: str) -> bool:
        asked.append(tenant)
        return tenant in {TENANT, OTHER}

    with pytest.raises(UpstreamRefusedError):
        await exchange(entra(Organizations(**claims), tenants=tenants))
    assert set(asked) <= {"9188040d-6c67-4c5b-b112-36a304b66dad"}


@pytest.mark.parametrize("token", [None, 5, "text", "a.b.c"])
async def test_what_is_not_a_token_is_refused(token: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Organizations()
    monkeypatch.setattr(script, "id_token", lambda: token)
    with pytest.raises(UpstreamRefusedError):
        await exchange(entra(script))


@pytest.mark.parametrize(
    ("issuer", "tenant", "is_accepted"),
    [
        (None, OTHER, True),
        (TEMPLATE, OTHER, True),
        (f"{AUTHORITY}/{OTHER}/v2.0", OTHER, True),
        (f"{AUTHORITY}/{TENANT}/v2.0", OTHER, False),
        (f"{AUTHORITY}/{OTHER}/v2.0", TENANT, False),
        ("https://evil.example.com/v2.0", TENANT, False),
    ],
)
async def test_a_key_of_one_tenant_signs_for_no_other(issuer: str | None, tenant: str, *, is_accepted: bool) -> None:
    members = {} if issuer is None else {"issuer": issuer}
    upstream = entra(Organizations(tid=tenant), StaticKeys(public(**members)))
    if is_accepted:
        assert (await exchange(upstream)).user.tenant == tenant
    else:
        with pytest.raises(UpstreamUnavailableError, match="key of the ID token"):
            await exchange(upstream)


async def test_a_token_that_another_key_has_signed_is_refused() -> None:
    script = Organizations()
    script.signer = key("RSA", "second")
    with pytest.raises(UpstreamRefusedError, match="signature"):
        await exchange(entra(script))


async def test_a_refresh_that_names_a_user_of_another_tenant_is_refused() -> None:
    with pytest.raises(UpstreamRefusedError, match="another user"):
        await entra(Organizations(tid=OTHER)).refresh("again", f"{TENANT}.ada-object")


async def test_guests_are_those_of_another_identity_provider() -> None:
    assert (await exchange(entra(Organizations(idp=f"{AUTHORITY}/{TENANT}/v2.0")))).user.tenant == TENANT
    with pytest.raises(UpstreamRefusedError, match="guest"):
        await exchange(entra(Organizations(idp=f"{AUTHORITY}/{OTHER}/v2.0")))


async def test_a_token_for_another_api_is_requested_at_the_tenant_of_the_user() -> None:
    script = Organizations()
    script.access_token = sign({"aud": APP, "tid": OTHER})
    certificate = ClientCertificate(pem())
    upstream = entra(script, on_behalf_of="access_as_user", client_secret=None, credential=certificate)
    signed_in = await exchange(upstream)
    issued = await upstream.exchange_token(signed_in.access_token.token, [TASKS], None)
    assert issued.seconds == 3600
    _, url, _, form = script.requests[-1]
    assert url == f"{AUTHORITY}/{OTHER}/oauth2/v2.0/token"
    assert form["requested_token_use"] == "on_behalf_of"


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("opaque", UpstreamUnavailableError),
        (sign({"aud": APP}), UpstreamUnavailableError),
        (sign({"aud": APP, "tid": "evil.example.com/"}), UpstreamUnavailableError),
        (sign({"aud": APP, "tid": "../../x"}), UpstreamUnavailableError),
        (sign({"aud": APP, "tid": "9188040d-6c67-4c5b-b112-36a304b66dad"}), UpstreamRefusedError),
    ],
)
async def test_an_access_token_of_no_allowed_tenant_is_exchanged_nowhere(token: str, error: type[Exception]) -> None:
    script = Organizations()
    upstream = entra(script, on_behalf_of="access_as_user")
    with pytest.raises(error):
        await upstream.exchange_token(token, [TASKS], None)
    assert not any(form for *_, form in script.requests)


@pytest.mark.parametrize(
    ("tenant", "options", "reason"),
    [
        ("organizations", {}, r'needs the tenants that may sign in: tenants=\["<tenant id>"\]'),
        ("organizations", {"tenants": []}, "needs the tenants"),
        ("organizations", {"tenants": ["contoso.onmicrosoft.com"]}, "GUID"),
        ("organizations", {"tenants": ["organizations"]}, "GUID"),
        ("organizations", {"tenants": ["*"]}, "GUID"),
        ("common", {"tenants": [TENANT]}, "personal accounts"),
        ("consumers", {"tenants": [TENANT]}, "is for EntraID"),
        (TENANT, {"tenants": [OTHER]}, "is for EntraID"),
    ],
)
def test_tenants_that_are_not_named_are_refused(tenant: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        EntraID(tenant, APP, "s", **options)


def test_one_string_of_tenants_is_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        EntraID("organizations", APP, "s", tenants=TENANT)


def test_a_list_in_place_of_the_tenant_is_refused_with_the_form_for_several() -> None:
    with pytest.raises(TypeError, match=r'EntraID\("organizations", \.\.\., tenants=\[\.\.\.\]\)'):
        EntraID([TENANT, OTHER], APP, "s")  # type: ignore[arg-type]


async def test_the_tenant_of_the_user_is_in_the_principal_and_another_tenant_reads_why() -> None:
    script = Organizations()
    stage = await Stage(upstream=entra(script, tenants=[TENANT])).with_client()

    async def sign_in() -> Any:
        browser = Browser()
        sent = await stage.consent(await stage.authorize(browser), browser)
        query = dict(parse_qsl(urlsplit(sent.location).query))
        script.claims["nonce"] = query["nonce"]
        back = await stage.callback({"code": "code of Entra", "state": query["state"]}, browser)
        return await stage.exchange(back.query["code"])

    principal = await stage.caller_of((await sign_in()).json["access_token"])
    assert (principal.claims["tid"], principal.subject) == (TENANT, f"{TENANT}.ada-object")
    script.claims["tid"] = OTHER
    refused = await sign_in()
    assert (refused.status, refused.json["error"]) == (400, "invalid_grant")
    assert "Your organization may not use this server" in refused.json["error_description"]
