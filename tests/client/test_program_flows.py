"""How programs get tokens at a real authorization server, and who gets their credentials."""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from starlette.responses import RedirectResponse

from funcmcp._client import sign_in
from funcmcp._client.credentials import JWT_BEARER, TOKEN_EXCHANGE
from funcmcp.client import (
    AuthenticationError,
    Client,
    ClientCredentials,
    EnterpriseSignIn,
    HTTPEndpoint,
    IdentityProvider,
    SignInError,
    WorkloadIdentity,
)
from tests.client.authorizing import authorizing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.client.authorizing import Authorizing

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

REPORTS = ClientCredentials("reports", "hush")


@pytest.fixture(autouse=True)
def without_refresh_tokens(server: Authorizing) -> None:
    server.refresh_token = False


async def greet(server: Authorizing, sign_in: Any) -> str:
    async with Client(HTTPEndpoint(server.url, sign_in=sign_in)) as client:
        return (await client.call_tool("greet")).text


async def test_a_program_gets_a_token_for_its_secret_once(server: Authorizing) -> None:
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        results = await asyncio.gather(*(client.call_tool("greet") for _ in range(5)))
    assert [result.text for result in results] == ["hello"] * 5
    assert server.requests == [
        ("token", {"grant_type": "client_credentials", "scope": "orders.read", "resource": server.url})
    ]
    assert server.token_headers[0]["authorization"] == "Basic cmVwb3J0czpodXNo"


async def test_an_authorization_server_for_programs_alone_needs_no_pkce(server: Authorizing) -> None:
    for name in ("authorization_endpoint", "code_challenge_methods_supported", "registration_endpoint"):
        del server.issuer[name]
    assert await greet(server, REPORTS) == "hello"


async def test_the_scopes_of_the_program_are_requested_beside_those_of_the_server(server: Authorizing) -> None:
    await greet(server, ClientCredentials("reports", "hush", scopes=("audit", "orders.read")))
    assert server.requests[0][1]["scope"] == "audit orders.read"


async def test_a_token_that_is_about_to_expire_is_replaced_without_asking_the_server(server: Authorizing) -> None:
    server.expires_in = 0
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        before = len(server.requests)
        await client.call_tool("greet")
        statuses = [name for name, _ in server.requests[before:]]
    assert statuses
    assert set(statuses) == {"token"}
    refused = [call for call in server.calls if "authorization" not in call]
    assert len(refused) == 1  # the first request alone


async def test_a_token_in_its_last_seconds_is_used_while_the_authorization_server_is_away(
    server: Authorizing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        monkeypatch.setattr(sign_in, "time", lambda: time() + 3600 - 20)
        server.answers = [(503, {"error": "temporarily_unavailable"})]
        assert (await client.call_tool("greet")).text == "hello"


async def test_a_token_with_a_short_lifetime_is_not_replaced_before_each_request(server: Authorizing) -> None:
    server.expires_in = 20
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        await client.call_tool("greet")
    assert len(server.those("token")) == 1


async def test_a_call_whose_new_token_is_refused_is_not_sent_a_third_time(server: Authorizing) -> None:
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        server.accepts_nothing = True
        server.calls.clear()
        with pytest.raises(AuthenticationError, match="401"):
            await client.call_tool("greet")
        assert len(server.calls) == 2


async def test_a_token_that_the_server_refuses_is_replaced(server: Authorizing) -> None:
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        server.valid = set()
        assert (await client.call_tool("greet")).text == "hello"
    assert len(server.those("token")) == 2


async def test_a_further_scope_is_requested_once(server: Authorizing) -> None:
    server.lacks_scope = True
    with pytest.raises(AuthenticationError, match="insufficient_scope"):
        await greet(server, REPORTS)
    assert [form["scope"] for form in server.those("token")] == ["orders.read", "orders.read orders.write"]


async def test_a_refusal_is_an_error_without_another_request_or_secret(server: Authorizing) -> None:
    server.answers = [(401, {"error": "invalid_client", "error_description": "unknown"})]
    with pytest.raises(SignInError, match="invalid_client unknown") as raised:
        await greet(server, REPORTS)
    assert len(server.those("token")) == 1
    assert "hush" not in str(raised.value)


async def test_a_workload_sends_the_token_of_its_platform(server: Authorizing, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("platform-token\n")
    assert await greet(server, WorkloadIdentity(file, scopes=("audit",))) == "hello"
    form = {
        "grant_type": JWT_BEARER,
        "assertion": "platform-token",
        "scope": "audit orders.read",
        "resource": server.url,
    }
    assert server.requests == [("token", form)]
    assert "authorization" not in server.token_headers[0]


async def test_a_workload_whose_token_is_refused_does_not_try_again(server: Authorizing) -> None:
    server.answers = [(400, {"error": "invalid_grant"})]
    with pytest.raises(SignInError, match="invalid_grant"):
        await greet(server, WorkloadIdentity(lambda: "platform-token", client_id="desk"))
    assert [form["client_id"] for form in server.those("token")] == ["desk"]


async def test_a_workload_whose_renewal_is_refused_does_not_try_another_grant(server: Authorizing) -> None:
    async with Client(HTTPEndpoint(server.url, sign_in=WorkloadIdentity(lambda: "platform-token"))) as client:
        server.valid, server.answers = set(), [(400, {"error": "invalid_grant"})]
        with pytest.raises(SignInError, match="invalid_grant"):
            await client.call_tool("greet")
    assert len(server.those("token")) == 2


async def test_the_platform_is_asked_for_a_token_for_the_issuer(server: Authorizing) -> None:
    await greet(server, WorkloadIdentity(lambda audience: f"for {audience}"))
    assert server.those("token")[0]["assertion"] == f"for {server.origin}"


@pytest.mark.parametrize("sign_in", [REPORTS, WorkloadIdentity(lambda: "platform-token")])
async def test_a_credential_goes_to_the_configured_issuer_only(server: Authorizing, sign_in: Any) -> None:
    with pytest.raises(SignInError, match="names another authorization server"):
        await greet(server, type(sign_in)(*_positional(sign_in), issuer="https://login.example.com"))
    assert server.those("token") == []


def _positional(sign_in: Any) -> tuple[Any, ...]:
    return (sign_in.token,) if isinstance(sign_in, WorkloadIdentity) else (sign_in.client_id, sign_in.client_secret)


@pytest.fixture
def thief() -> Iterator[Authorizing]:
    with authorizing() as server:
        yield server


async def test_a_server_that_is_taken_over_can_not_send_the_secret_elsewhere(
    server: Authorizing, thief: Authorizing
) -> None:
    async with Client(HTTPEndpoint(server.url, sign_in=REPORTS)) as client:
        server.valid = set()
        server.resource = {"resource": server.url, "authorization_servers": [thief.origin]}
        server.lacks_scope = True  # the step-up looks for the authorization server again
        with pytest.raises(SignInError, match="names another authorization server"):
            await client.call_tool("greet")
    assert thief.requests == []


async def test_metadata_of_another_issuer_get_no_secret(server: Authorizing) -> None:
    server.issuer["issuer"] = "https://evil.example"
    with pytest.raises(SignInError, match="of another issuer"):
        await greet(server, REPORTS)
    assert server.those("token") == []


async def test_a_token_endpoint_that_redirects_gets_no_second_request(server: Authorizing, thief: Authorizing) -> None:
    server.answers = [(307, RedirectResponse(f"{thief.origin}/token", 307))]
    with pytest.raises(SignInError, match="status 307"):
        await greet(server, REPORTS)
    assert thief.requests == []


@pytest.fixture
def company() -> Iterator[Authorizing]:
    """Return another server, whose token endpoint is that of a company's identity provider."""
    with authorizing() as server:
        yield server


def provider(company: Authorizing, **options: Any) -> IdentityProvider:
    return IdentityProvider(
        token_endpoint=f"{company.origin}/token", client_id="idp-desk", **{"id_token": lambda: "id-token", **options}
    )


ID_JAG = {"access_token": "the-id-jag", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"}


async def test_a_company_decides_which_servers_its_users_may_use(server: Authorizing, company: Authorizing) -> None:
    company.answers = [(200, {**ID_JAG, "token_type": "N_A"})]
    sign_in = EnterpriseSignIn("desk", "hush", assertion=provider(company, client_secret="s"), scopes=("orders.read",))
    assert await greet(server, sign_in) == "hello"
    assert company.requests == [
        (
            "token",
            {
                "grant_type": TOKEN_EXCHANGE,
                "requested_token_type": ID_JAG["issued_token_type"],
                "audience": server.origin,
                "resource": server.url,
                "subject_token": "id-token",
                "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
                "scope": "orders.read",
            },
        )
    ]
    form = {"grant_type": JWT_BEARER, "assertion": "the-id-jag", "scope": "orders.read", "resource": server.url}
    assert server.requests == [("token", form)]
    assert "id-token" not in str(server.requests + [("", call) for call in server.calls])


async def test_a_company_gets_the_scopes_that_the_server_asks_for(server: Authorizing, company: Authorizing) -> None:
    company.answers = [(200, {**ID_JAG, "token_type": "N_A"})]
    await greet(server, EnterpriseSignIn("desk", assertion=provider(company)))
    assert company.requests[0][1]["scope"] == "orders.read"


async def test_the_application_is_asked_once_for_a_newer_id_token(server: Authorizing, company: Authorizing) -> None:
    tokens = iter(["expired", "newer", "newest"])
    company.answers = [(400, {"error": "invalid_grant"}), (200, {**ID_JAG, "token_type": "N_A"})]
    sign_in = EnterpriseSignIn("desk", assertion=provider(company, id_token=lambda: next(tokens)))
    assert await greet(server, sign_in) == "hello"
    assert [form["subject_token"] for form in company.those("token")] == ["expired", "newer"]


async def test_an_id_token_that_stays_the_same_is_not_sent_again(server: Authorizing, company: Authorizing) -> None:
    company.answers = [(400, {"error": "invalid_grant"})]
    with pytest.raises(SignInError, match="invalid_grant"):
        await greet(server, EnterpriseSignIn("desk", assertion=provider(company)))
    assert len(company.those("token")) == 1


async def test_a_company_that_refuses_is_an_error(server: Authorizing, company: Authorizing) -> None:
    company.answers = [(400, {"error": "access_denied"})]
    with pytest.raises(SignInError, match="access_denied"):
        await greet(server, EnterpriseSignIn("desk", assertion=provider(company)))
    assert company.requests[0][1]["client_id"] == "idp-desk"
    assert server.those("token") == []


@pytest.mark.parametrize("answer", [{"access_token": "a"}, {**ID_JAG, "access_token": 7}, {}])
async def test_another_token_than_an_identity_assertion_is_not_sent_on(
    server: Authorizing, company: Authorizing, answer: dict[str, Any]
) -> None:
    company.answers = [(200, answer)]
    with pytest.raises(SignInError, match="no identity assertion"):
        await greet(server, EnterpriseSignIn("desk", assertion=provider(company)))
    assert server.those("token") == []


async def test_a_function_gets_audience_and_resource_and_returns_an_assertion(server: Authorizing) -> None:
    async def assertion(audience: str, resource: str) -> str:
        return f"{audience} {resource}"

    await greet(server, EnterpriseSignIn("desk", assertion=assertion))
    assert server.those("token")[0]["assertion"] == f"{server.origin} {server.url}"
    with pytest.raises(SignInError, match="returned no identity assertion"):
        await greet(server, EnterpriseSignIn("desk", assertion=lambda audience, resource: ""))


async def test_a_credential_and_a_token_in_headers_are_not_combined(server: Authorizing) -> None:
    endpoint = HTTPEndpoint(server.url, sign_in=REPORTS, headers={"Authorization": "Bearer x"})
    with pytest.raises(ValueError, match="gets no Authorization header"):
        Client(endpoint)
