"""Scripts in place of identity providers that tests can't reach. They are our own work, and prove nothing about these.

`scripted_entra.py` has that of Entra ID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from funcmcp._oauth_proxy.upstream import UpstreamHTTP, UpstreamUnavailableError
from funcmcp._protocol.codec import encode
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

    async def fetch(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        *,
        json: object = None,
    ) -> tuple[int, bytes]:
        status, value = await self.request(method, url, headers, form, json=json)
        return status, value if isinstance(value, bytes) else encode(value)

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


class UserinfoHTTP(OpenIDHTTP):
    """An OpenID provider with userinfo, at which the users of a `Stage` sign in.

    Attributes:
        userinfo: The answer of its userinfo endpoint: status and value. Bytes are sent as they are. An exception is
            raised.
        userinfo_requests: How often userinfo was requested.
        refresh_has_id_token: Whether a refresh has a new ID token.
    """

    def __init__(self, issuer: str = "https://login.example.com", client_id: str = "app", **document: Any) -> None:
        super().__init__(issuer, client_id, **{"userinfo_endpoint": f"{issuer}/userinfo"} | document)
        self.claims = {"sub": "ada"}
        self.userinfo: tuple[int, Any] | Exception = (404, {})
        self.refresh_has_id_token = True
        self._count = 0

    @property
    def userinfo_requests(self) -> int:
        return sum(url.endswith("/userinfo") for _, url, _, _ in self.requests)

    def sign_in(self, url: str) -> dict[str, str]:
        """Do as the provider does after the user has signed in: return the query of the callback."""
        query = dict(parse_qsl(urlsplit(url).query))
        self._count += 1
        self.claims = {**self.claims, "nonce": query["nonce"]}
        return {"code": f"code-{self._count}", "state": query["state"]}

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if not url.endswith("/userinfo"):
            return super().answer(url, headers, form)
        assert headers["authorization"] == "Bearer opaque"
        if isinstance(self.userinfo, Exception):
            raise self.userinfo
        return self.userinfo

    def token(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        status, answer = super().token(headers, form)
        if "refresh_token" in form and not self.refresh_has_id_token:
            answer = {name: value for name, value in answer.items() if name != "id_token"}
        return status, answer


def with_keys(upstream: Any, http: ScriptedHTTP) -> Any:
    """Return an upstream whose requests go to a script, and whose keys are those of the tests."""
    from funcmcp.auth import StaticKeys

    upstream._http = http
    upstream._keys = "http://127.0.0.1:1/keys", StaticKeys(public())
    return upstream
