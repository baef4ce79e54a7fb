"""GitHub as upstream of the proxy. It is not an OpenID provider: who the user is comes from its API.

How it works: the code is exchanged for an access token of GitHub, with which the proxy asks for the user, the verified
e-mail address and, if organizations are configured, the memberships. The access token of an OAuth app does not expire,
so it renews the sign-in: it is asked for the user again. It leaves the proxy only encrypted, in a refresh token.

Source: GitHub Docs, "Authorizing OAuth apps", "Refreshing user access tokens", REST API "Users", "Emails" and
"Organization members". GitHub answers with 200 to a code that it does not accept; the error is in the body.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from funcmcp._auth.urls import checked
from funcmcp._oauth_proxy.failures import ACCOUNT, PROVIDER_AWAY
from funcmcp._oauth_proxy.id_tokens import text_claim
from funcmcp._oauth_proxy.upstream import (
    SignIn,
    UpstreamHTTP,
    UpstreamRefusedError,
    UpstreamUnavailableError,
    User,
    failed,
)
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._oauth_proxy.upstream import AuthorizationRequest

_SITE: Final = "https://github.com"
_API: Final = "https://api.github.com"
_USER_TOKEN, _REFRESH_TOKEN = "user:", "refresh:"


@public("funcmcp.auth")
class GitHub:
    """GitHub for `OAuthProxy`.

    Create an OAuth app, or a GitHub App, with the callback URL ``https://<host of the server>/oauth/callback``.

    Args:
        client_id: The id of the app.
        client_secret: A secret of the app.
        organizations: Organizations whose members may sign in. None: everybody with a GitHub account may sign in,
            unless `OAuthProxy.allow` decides otherwise.
        site: The URL of GitHub, for GitHub Enterprise Server.
        api: The URL of its REST API.

    Raises:
        ValueError: *organizations* is empty, or the id or the secret is missing.
        TypeError: *organizations* is one string.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        *,
        organizations: Sequence[str] | None,
        site: str = _SITE,
        api: str = _API,
    ) -> None:
        if isinstance(organizations, str):
            raise TypeError("GitHub.organizations is a list of strings, not one string.")
        if organizations is not None and not organizations:
            raise ValueError("GitHub.organizations needs at least one organization. None accepts every GitHub account.")
        if not client_id or not client_secret:
            raise ValueError("GitHub needs the client id and a client secret of the app.")
        checked("GitHub.site", site)
        checked("GitHub.api", api)
        self.name: str = "GitHub"
        self.issuer: str | None = f"{site}/login/oauth"
        self._client = {"client_id": client_id, "client_secret": client_secret}
        self._organizations = None if organizations is None else tuple(organizations)
        self._site = site
        self._api = api
        self._http = UpstreamHTTP()

    def __repr__(self) -> str:
        return f"GitHub({self._client['client_id']!r})"

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """See `Upstream.authorization_url`."""
        scopes = ["read:user", "user:email"] if self._organizations is None else ["read:user", "user:email", "read:org"]
        query = {
            "client_id": self._client["client_id"],
            "redirect_uri": request.redirect_uri,
            "scope": " ".join(scopes),
            "state": request.state,
            "code_challenge": request.challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._site}/login/oauth/authorize?{urlencode(query)}"

    async def requires_issuer(self) -> bool:
        """See `Upstream.requires_issuer`."""
        return False

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        """See `Upstream.exchange`. GitHub has no nonce: the verifier binds the code to the sign-in."""
        del nonce
        return await self._sign_in({"code": code, "redirect_uri": redirect_uri, "code_verifier": verifier})

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        """See `Upstream.refresh`."""
        if refresh_token.startswith(_REFRESH_TOKEN):
            form = {"grant_type": "refresh_token", "refresh_token": refresh_token.removeprefix(_REFRESH_TOKEN)}
            signed_in = await self._sign_in(form)
        else:
            signed_in = SignIn(await self._user(refresh_token.removeprefix(_USER_TOKEN)), None)
        if signed_in.user is None or signed_in.user.subject != subject:
            raise UpstreamRefusedError("the refresh is another user's")
        return signed_in

    async def revoke(self, refresh_token: str) -> bool:
        """See `Upstream.revoke`."""
        del refresh_token
        return False

    async def _sign_in(self, form: dict[str, str]) -> SignIn:
        url = f"{self._site}/login/oauth/access_token"
        answer = await self._http.post(url, form | self._client, {})
        access_token, refresh_token = answer.get("access_token"), answer.get("refresh_token")
        if not isinstance(access_token, str) or not access_token:
            raise failed(UpstreamUnavailableError, PROVIDER_AWAY, "the answer has no access token")
        renewal = _USER_TOKEN + access_token
        if isinstance(refresh_token, str) and refresh_token:
            renewal = _REFRESH_TOKEN + refresh_token
        return SignIn(await self._user(access_token), renewal)

    async def _user(self, access_token: str) -> User:
        user, emails = await asyncio.gather(self._ask("/user", access_token), self._ask("/user/emails", access_token))
        number = user.get("id") if isinstance(user, dict) else None
        if not isinstance(user, dict) or type(number) is not int:
            raise UpstreamUnavailableError("the user has no id")
        organizations = await self._memberships(access_token)
        if self._organizations is not None and not organizations:
            raise failed(UpstreamRefusedError, ACCOUNT, "the user is not a member of the organizations")
        return User(
            str(number),
            name=text_claim(user, "name", "login"),
            email=_primary(emails),
            roles=frozenset(organizations),
            claims={"login": user.get("login"), "organizations": organizations},
        )

    async def _memberships(self, access_token: str) -> list[str]:
        """Return those of the configured organizations of which the user is a member."""
        members = []
        for organization in self._organizations or ():
            path = f"/user/memberships/orgs/{quote(organization, safe='')}"
            membership = await self._ask(path, access_token, missing={})
            if isinstance(membership, dict) and membership.get("state") == "active":
                members.append(organization)
        return members

    async def _ask(self, path: str, access_token: str, *, missing: Any = None) -> Any:
        headers = {"authorization": f"Bearer {access_token}", "accept": "application/vnd.github+json"}
        headers["user-agent"] = "funcmcp"  # GitHub's API requires one
        status, value = await self._http.request("GET", f"{self._api}{path}", headers, None)
        if status == 401:  # noqa: PLR2004 - Unauthorized
            raise UpstreamRefusedError("GitHub does not accept its access token any more")
        if status in {403, 404} and missing is not None:
            return missing
        if status != 200:  # noqa: PLR2004 - OK
            raise UpstreamUnavailableError(f"status {status} for {path}")
        return value


def _primary(emails: Any) -> str | None:
    """Return the primary address, if GitHub has verified it."""
    for entry in emails if isinstance(emails, list) else []:
        if isinstance(entry, dict) and entry.get("primary") is True and entry.get("verified") is True:
            return text_claim(entry, "email")
    return None
