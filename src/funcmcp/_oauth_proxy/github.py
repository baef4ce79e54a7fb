"""GitHub as upstream of the proxy. It is not an OpenID provider: who the user is comes from its API.

How it works: the code is exchanged for an access token of GitHub, with which the proxy asks for the user, the verified
e-mail address and, if organizations are configured, the memberships. The access token of an OAuth app does not expire,
so it renews the sign-in (`oauth2`): the API is asked for the user again.

Source: GitHub Docs, "Authorizing OAuth apps", "Refreshing user access tokens", REST API "Users", "Emails" and
"Organization members", "Rate limits for the REST API" (a 403, or a 429, with a message). GitHub answers with 200 to a
code that it does not accept; the error is in the body.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from funcmcp._auth.client_options import checked_parameters
from funcmcp._auth.urls import checked
from funcmcp._oauth_proxy.failures import ACCOUNT, PROVIDER_ANSWER
from funcmcp._oauth_proxy.id_tokens import exact_claim, text_claim
from funcmcp._oauth_proxy.oauth2 import OAuth2
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError, User, failed
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from funcmcp._oauth_proxy.upstream import UpstreamHTTP

_SITE: Final = "https://github.com"
_API: Final = "https://api.github.com"


@public("funcmcp.auth")
class GitHub(OAuth2):
    """GitHub for `OAuthProxy`.

    Create an OAuth app, or a GitHub App, with the callback URL ``https://<host of the server>/oauth/callback``.

    Args:
        client_id: The id of the app.
        client_secret: A secret of the app.
        organizations: Organizations whose members may sign in. None: everybody with a GitHub account may sign in,
            unless `OAuthProxy.allow` decides otherwise.
        site: The URL of GitHub, for GitHub Enterprise Server.
        api: The URL of its REST API.
        parameters: More parameters of the authorization request, such as ``{"allow_signup": "false"}``.
        ca_file: A PEM file with certificate authorities that are trusted as well, for GitHub Enterprise Server.

    Raises:
        ValueError: *organizations* is empty, the id or the secret is missing, a parameter belongs to the proxy, or the
            file has no certificates.
        TypeError: *organizations* is one string.
    """

    def __init__(  # noqa: PLR0913 - the registration, and what the server does with its users
        self,
        client_id: str,
        client_secret: str,
        *,
        organizations: Sequence[str] | None,
        site: str = _SITE,
        api: str = _API,
        parameters: Mapping[str, str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if isinstance(organizations, str):
            raise TypeError("GitHub.organizations is a list of strings, not one string.")
        if organizations is not None and not organizations:
            raise ValueError("GitHub.organizations needs at least one organization. None accepts every GitHub account.")
        if not client_id or not client_secret:
            raise ValueError("GitHub needs the client id and a client secret of the app.")
        checked("GitHub.site", site)
        checked("GitHub.api", api)
        super().__init__(
            client_id,
            client_secret,
            authorize=f"{site}/login/oauth/authorize",
            token=f"{site}/login/oauth/access_token",
            userinfo=self._account,
            user=_user_of,
            scopes=["read:user", "user:email", *([] if organizations is None else ["read:org"])],
            token_endpoint_auth_method="client_secret_post",  # noqa: S106 - the name of a method
            parameters=checked_parameters("GitHub.parameters", parameters),
            name="GitHub",
            issuer=f"{site}/login/oauth",
            ca_file=ca_file,
        )
        self._organizations = None if organizations is None else tuple(organizations)
        self._api = api

    def __repr__(self) -> str:
        return f"GitHub({self._client_id!r})"

    async def requires_issuer(self) -> bool:
        """See `Upstream.requires_issuer`."""
        return False

    async def _account(self, answer: Mapping[str, Any], http: UpstreamHTTP) -> dict[str, Any]:
        """Return what the API says about the user of an access token."""
        del http
        access_token = answer["access_token"]
        user, emails = await asyncio.gather(self._ask("/user", access_token), self._ask("/user/emails", access_token))
        number = user.get("id") if isinstance(user, dict) else None
        if not isinstance(user, dict) or type(number) is not int:
            raise failed(UpstreamUnavailableError, PROVIDER_ANSWER, "the user has no id")
        organizations = await self._memberships(access_token)
        if self._organizations is not None and not organizations:
            raise failed(UpstreamRefusedError, ACCOUNT, "the user is not a member of the organizations")
        return user | {"email": _primary(emails), "organizations": organizations}

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
        if status in {403, 404} and missing is not None and not _is_rate_limit(value):
            return missing
        if status != 200:  # noqa: PLR2004 - OK
            raise UpstreamUnavailableError(f"status {status} for {path}")
        return value


def _is_rate_limit(answer: Any) -> bool:
    """Return whether an answer refuses a request only for now. GitHub does so with 403, as for what is forbidden."""
    message = answer.get("message") if isinstance(answer, dict) else None
    return isinstance(message, str) and "rate limit" in message.lower()


def _user_of(account: Mapping[str, Any]) -> User:
    return User(
        str(account["id"]),
        name=text_claim(dict(account), "name", "login"),
        email=account["email"],
        roles=frozenset(account["organizations"]),
        claims=account,
    )


def _primary(emails: Any) -> str | None:
    """Return the primary address, if GitHub has verified it."""
    for entry in emails if isinstance(emails, list) else []:
        if isinstance(entry, dict) and entry.get("primary") is True and entry.get("verified") is True:
            return exact_claim(entry, "email")
    return None
