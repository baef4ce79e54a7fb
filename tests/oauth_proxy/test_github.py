"""GitHub as upstream, against a script of our own."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamRefusedError, UpstreamUnavailableError
from funcmcp.auth import GitHub
from tests.oauth_proxy.scripted import ScriptedHTTP

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")
EMAILS = [
    {"email": "old@example.com", "primary": False, "verified": True},
    {"email": "ada@example.com", "primary": True, "verified": True},
]


class GitHubHTTP(ScriptedHTTP):
    """GitHub and its API."""

    def __init__(self) -> None:
        super().__init__()
        self.token: Any = {"access_token": "gho_1", "token_type": "bearer", "scope": "read:user"}
        self.answers: dict[str, tuple[int, Any]] = {
            "/user": (200, {"id": 42, "login": "ada", "name": "Ada"}),
            "/user/emails": (200, EMAILS),
            "/user/memberships/orgs/kitchen": (200, {"state": "active"}),
            "/user/memberships/orgs/bar": (200, {"state": "pending"}),
        }

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if url == "https://github.com/login/oauth/access_token":
            return 200, self.token
        assert headers["authorization"] == "Bearer gho_1"
        return self.answers.get(url.removeprefix("https://api.github.com"), (404, {"message": "Not Found"}))


def github(http: GitHubHTTP, organizations: Any = None) -> GitHub:
    upstream = GitHub("app", "secret", organizations=organizations)
    upstream._http = http
    return upstream


async def exchange(upstream: GitHub) -> Any:
    return await upstream.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


async def test_a_user_is_named_by_the_number_of_the_account() -> None:
    http = GitHubHTTP()
    signed_in = await exchange(github(http))
    user = signed_in.user
    assert (user.subject, user.name, user.email, user.claims["login"]) == ("42", "Ada", "ada@example.com", "ada")
    assert signed_in.refresh_token == "user:gho_1"
    assert http.requests[0][3] == {
        "client_id": "app",
        "client_secret": "secret",
        "grant_type": "authorization_code",
        "code": "code",
        "code_verifier": "verifier",
        "redirect_uri": REQUEST.redirect_uri,
    }


@pytest.mark.parametrize(
    ("organizations", "scope"), [(None, "read:user user:email"), (["kitchen"], "read:user user:email read:org")]
)
async def test_the_request_has_pkce_and_few_scopes(organizations: Any, scope: str) -> None:
    upstream = github(GitHubHTTP(), organizations)
    query = dict(parse_qsl(urlsplit(await upstream.authorization_url(REQUEST)).query))
    assert query == {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": REQUEST.redirect_uri,
        "scope": scope,
        "state": "state",
        "code_challenge": "challenge",
        "code_challenge_method": "S256",
    }
    assert not await upstream.requires_issuer()


async def test_members_of_the_organizations_sign_in() -> None:
    user = (await exchange(github(GitHubHTTP(), ["kitchen", "bar", "unknown"]))).user
    assert user.roles == {"kitchen"}


@pytest.mark.parametrize("organizations", [["bar"], ["unknown"], ["../user"]])
async def test_others_are_refused(organizations: list[str]) -> None:
    with pytest.raises(UpstreamRefusedError, match="not a member"):
        await exchange(github(GitHubHTTP(), organizations))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((403, {"message": "API rate limit exceeded for user ID 42."}), UpstreamUnavailableError),
        ((403, {"message": "You have exceeded a secondary rate limit. Please wait."}), UpstreamUnavailableError),
        (
            (403, {"message": "Although you appear to have the correct credentials, the organization ..."}),
            UpstreamRefusedError,
        ),
        ((403, []), UpstreamRefusedError),
    ],
)
async def test_a_rate_limit_signs_no_member_out(answer: tuple[int, Any], error: type[Exception]) -> None:
    http = GitHubHTTP()
    http.answers["/user/memberships/orgs/kitchen"] = answer
    with pytest.raises(error):
        await github(http, ["kitchen"]).refresh("user:gho_1", "42")


async def test_the_claims_are_what_the_api_says_with_the_verified_address() -> None:
    http = GitHubHTTP()
    http.answers["/user"] = 200, {"id": 42, "login": "ada", "email": "public@example.com", "avatar_url": "https://a/42"}
    user = (await exchange(github(http, ["kitchen"]))).user
    assert user.claims["avatar_url"] == "https://a/42"
    assert (user.claims["email"], user.claims["organizations"]) == ("ada@example.com", ["kitchen"])


@pytest.mark.parametrize("emails", [[], {}, [{"email": "a@b", "primary": True, "verified": False}], [5]])
async def test_an_address_that_is_not_verified_is_left_out(emails: Any) -> None:
    http = GitHubHTTP()
    http.answers["/user/emails"] = 200, emails
    assert (await exchange(github(http))).user.email is None


async def test_a_code_that_is_not_accepted_is_refused() -> None:
    http = GitHubHTTP()
    http.token = {"error": "bad_verification_code", "error_description": "expired"}
    with pytest.raises(UpstreamRefusedError, match="bad_verification_code"):
        await exchange(github(http))


@pytest.mark.parametrize(
    "token", [{"error": "incorrect_client_credentials"}, {}, {"access_token": ""}, {"access_token": 5}]
)
async def test_another_answer_is_an_outage(token: Any) -> None:
    http = GitHubHTTP()
    http.token = token
    with pytest.raises(UpstreamUnavailableError):
        await exchange(github(http))


@pytest.mark.parametrize("answer", [(500, {}), (200, []), (200, {"id": "42"}), (200, {"id": True}), (403, {})])
async def test_a_user_without_an_id_is_an_outage(answer: tuple[int, Any]) -> None:
    http = GitHubHTTP()
    http.answers["/user"] = answer
    with pytest.raises(UpstreamUnavailableError):
        await exchange(github(http))


async def test_a_refresh_asks_for_the_user_again() -> None:
    http = GitHubHTTP()
    upstream = github(http)
    renewed = await upstream.refresh("user:gho_1", "42")
    assert renewed.user is not None
    assert (renewed.user.subject, renewed.refresh_token) == ("42", None)
    with pytest.raises(UpstreamRefusedError, match="another user"):
        await upstream.refresh("user:gho_1", "43")
    http.answers["/user"] = 401, {"message": "Bad credentials"}
    with pytest.raises(UpstreamRefusedError, match="not accept"):
        await upstream.refresh("user:gho_1", "42")


async def test_a_github_app_with_expiring_tokens_uses_its_refresh_token() -> None:
    http = GitHubHTTP()
    http.token |= {"refresh_token": "ghr_1", "expires_in": 28_800}
    upstream = github(http)
    assert (await exchange(upstream)).refresh_token == "refresh:ghr_1"
    http.token |= {"refresh_token": "ghr_2"}
    assert (await upstream.refresh("refresh:ghr_1", "42")).refresh_token == "refresh:ghr_2"
    assert [form for *_, form in http.requests if "refresh_token" in form] == [
        {"grant_type": "refresh_token", "refresh_token": "ghr_1", "client_id": "app", "client_secret": "secret"}
    ]
    http.token = {"error": "bad_refresh_token"}
    with pytest.raises(UpstreamRefusedError):
        await upstream.refresh("refresh:ghr_1", "42")


async def test_a_sign_in_can_not_be_revoked() -> None:
    assert not await github(GitHubHTTP()).revoke("user:gho_1")


@pytest.mark.parametrize(
    ("client_id", "options", "reason"),
    [
        ("", {"organizations": None}, "client id"),
        ("app", {"organizations": []}, "None accepts every GitHub account"),
        ("app", {"organizations": None, "site": "http://github.example.com"}, "https"),
        ("app", {"organizations": None, "api": "http://api.example.com"}, "https"),
    ],
)
def test_an_invalid_configuration_is_refused(client_id: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        GitHub(client_id, "secret", **options)
    with pytest.raises(TypeError, match="list"):
        GitHub("app", "secret", organizations="kitchen")
    assert repr(GitHub("app", "secret", organizations=None)) == "GitHub('app')"


async def test_parameters_are_added_to_the_request() -> None:
    upstream = GitHub("app", "secret", organizations=None, parameters={"allow_signup": "false"})
    assert "allow_signup=false" in await upstream.authorization_url(REQUEST)
    with pytest.raises(ValueError, match=r"GitHub\.parameters can't contain state"):
        GitHub("app", "secret", organizations=None, parameters={"state": "x"})
