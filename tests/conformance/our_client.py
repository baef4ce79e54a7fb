"""Our client as the conformance suite runs it: it signs in at the URL, its argument, and calls the tools there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx2

from funcmcp.client import (
    Client,
    ClientCredentials,
    EnterpriseSignIn,
    HTTPEndpoint,
    IdentityProvider,
    PrivateKeyJWT,
    SignIn,
    WorkloadIdentity,
)
from tests.conformance.client_steps import callbacks_for, use

NEGOTIATES = "request-metadata"
"""The scenario whose server refuses the first revision: a client that was told one has none to choose."""

SKILLS = "sep-2640-"
"""How the scenarios of the skills extension begin."""

DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def browse(address: str) -> None:
    """Follow the redirects of the suite's authorization server, which asks no user."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        (await browser.get(address)).raise_for_status()


async def use_skills(client: Client) -> None:
    """List the skills, and read their files unless the scenario is about the list alone."""
    skills = await client.list_skills()
    if "prefetch" in os.environ["MCP_CONFORMANCE_SCENARIO"]:
        return
    for skill in skills:
        await client.read_skill(skill)
        for file in skill.files:
            await client.read_skill(skill, file)


def sign_in_for(scenario: str, context: dict[str, Any]) -> Any:
    """Return how the client gets tokens in a scenario, with the credentials that the suite provides."""
    if scenario == "auth/client-credentials-basic":
        return ClientCredentials(context["client_id"], context["client_secret"])
    if scenario == "auth/client-credentials-jwt":
        key = PrivateKeyJWT(context["private_key_pem"], algorithm=context["signing_algorithm"])
        return ClientCredentials(context["client_id"], credential=key)
    if scenario == "auth/wif-jwt-bearer":
        return WorkloadIdentity(lambda: str(context["valid_jwt"]))
    if scenario == "auth/enterprise-managed-authorization":
        provider = IdentityProvider(
            token_endpoint=context["idp_token_endpoint"],
            client_id=context["idp_client_id"],
            id_token=lambda: str(context["idp_id_token"]),
        )
        return EnterpriseSignIn(context["client_id"], context["client_secret"], assertion=provider)
    return SignIn(
        open_browser=browse,
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_document=DOCUMENT,
        dpop=scenario in {"auth/dpop", "auth/dpop-nonce"},
    )


async def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    if scenario == NEGOTIATES:
        revision = None
    endpoint = HTTPEndpoint(url, sign_in=sign_in_for(scenario, context))
    async with Client(endpoint, revision=revision, **callbacks_for(scenario)) as client:
        if scenario.startswith(SKILLS):
            await use_skills(client)
        else:
            await use(client, context)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
