"""The official Python client brings an identity assertion (ID-JAG) to a server with a proxy: no page, no person.

The identity provider is a script of our own, because no provider that can be installed issues such assertions.
"""

from __future__ import annotations

from time import time
from typing import Any

import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.auth import OAuthTokenError
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from funcmcp import Context, MCPServer
from funcmcp._processes.server import origin_of
from funcmcp.auth import OIDC, Auth, OAuthProxy
from funcmcp.state import MemorySignIns
from tests.auth.making_tokens import sign
from tests.clients.signing_in import Recorder, serving_in_thread
from tests.clients.test_sign_in import Memory
from tests.oauth_proxy.test_oidc import running
from tests.patience import PATIENCE
from tests.sockets import listen

HOST = "127.0.0.1"
AGENT, SECRET = "agent", "a secret: with +, % and &"
SCOPES = {"orders.read": "See your orders"}


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
async def test_the_official_client_calls_a_tool_for_a_user_whom_the_provider_vouches_for(method: Any) -> None:
    listener = listen(HOST, 0)
    origin = origin_of(HOST, listener)
    url = f"{origin}/mcp"
    brought: list[str] = []
    async with running() as idp:

        async def assertion(audience: str, resource: str) -> str:
            """Return an assertion as an identity provider issues it; the same one if it is asked again."""
            claims = {
                "iss": idp.issuer,
                "aud": audience,
                "resource": resource,
                "sub": "ada",
                "client_id": AGENT,
                "jti": "one",
                "iat": int(time()),
                "exp": int(time()) + 300,
                "scope": "orders.read",
            }
            brought.append(sign(claims, header={"typ": "oauth-id-jag+jwt"}))
            return brought[0]

        proxy = OAuthProxy(
            url,
            upstream=OIDC(idp.issuer, "app", "secret"),
            scopes=SCOPES,
            store=MemorySignIns(),
            identity_assertions={AGENT: SECRET},
        )
        mcp = MCPServer("Orders", auth=Auth(proxy, scopes=["orders.read"]))

        @mcp.tool
        def who(context: Context) -> dict[str, Any]:
            assert context.principal is not None
            return {"subject": context.principal.subject, "client": context.principal.client_id}

        with serving_in_thread(Recorder("orders", mcp, []), listener):
            provider = IdentityAssertionOAuthProvider(
                url, Memory(), AGENT, SECRET, origin, assertion, "orders.read", method
            )
            async with (
                httpx2.AsyncClient(auth=provider, timeout=PATIENCE) as http,
                OfficialClient(streamable_http_client(url, http_client=http)) as client,
            ):
                answer = await client.call_tool("who", {})
                assert answer.structured_content == {"subject": "ada", "client": AGENT}
            stolen = IdentityAssertionOAuthProvider(url, Memory(), AGENT, SECRET, origin, assertion, None, method)
            async with httpx2.AsyncClient(auth=stolen, timeout=PATIENCE) as http:
                with pytest.raises(OAuthTokenError, match="used before"):
                    await http.post(url, json={})
