"""Scripts in place of identity providers that tests can't reach. They are our own work, and prove nothing about these.

`scripted_entra.py` has that of Entra ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._oauth_proxy.upstream import UpstreamHTTP, UpstreamUnavailableError
from tests.auth.making_tokens import NOW, public, sign

if TYPE_CHECKING:
    from collections.abc import Mapping

TENANT = "11111111-2222-3333-4444-555555555555"
APP = "66666666-7777-8888-9999-000000000000"
ENTRA = f"https://login.microsoftonline.com/{TENANT}/v2.0"
GOOGLE = "https://accounts.google.com"


class ScriptedHTTP(UpstreamHTTP):
    """Answers requests in place of a network.

    Attributes:
        requests: Method, URL, header and form of the requests.
        bodies: The JSON of those that have it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.bodies: list[object] = []

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        *,
        json: object = None,
    ) -> tuple[int, Any]:
        self.requests.append((method, url, dict(headers), dict(form or {})))
        if json is not None:
            self.bodies.append(json)
        return self.answer(url, dict(headers), dict(form or {}))

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        raise UpstreamUnavailableError(url)


class OpenIDHTTP(ScriptedHTTP):
    """An OpenID provider whose codes work once.

    Attributes:
        claims: The claims of its ID tokens.
    """

    def __init__(self, issuer: str, client_id: str, **document: Any) -> None:
        super().__init__()
        self.issuer = issuer
        self.client_id = client_id
        self.document = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "jwks_uri": "http://127.0.0.1:1/keys",
        } | document
        self.claims: dict[str, Any] = {}
        self.used: set[str] = set()

    def id_token(self) -> str:
        good = {"iss": self.issuer, "aud": self.client_id, "exp": NOW + 300, "iat": NOW, "nonce": "nonce"}
        return sign(good | self.claims)

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if url.endswith("/.well-known/openid-configuration"):
            return 200, self.document
        return self.token(headers, form)

    def token(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        value = form.get("code", form.get("refresh_token", ""))
        if value in self.used:
            return 400, {"error": "invalid_grant", "error_description": "used"}
        self.used.add(value)
        return 200, {"id_token": self.id_token(), "refresh_token": f"{value}+", "access_token": "opaque"}


def with_keys(upstream: Any, http: ScriptedHTTP) -> Any:
    """Return an upstream whose requests go to a script, and whose keys are those of the tests."""
    from funcmcp.auth import StaticKeys

    upstream._http = http
    upstream._keys = "http://127.0.0.1:1/keys", StaticKeys(public())
    return upstream
