"""Tokens of Microsoft Entra ID, as its reference describes them."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.entra_id import entra
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.jwks import JWKS
from funcmcp._auth.tokens.keys import StaticKeys
from tests.auth.making_tokens import NOW, Clock, bearing, claims, key, public, sign

TENANT = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-2222-3333-4444-555555555555"
APP = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
V2 = {
    "iss": f"https://login.microsoftonline.com/{TENANT}/v2.0", "aud": APP, "tid": TENANT, "ver": "2.0", "azp": "client",
    "scp": "orders.read orders.write", "oid": "o", "name": "Alice", "client_id": None,
}  # fmt: skip
V1 = {
    "iss": f"https://sts.windows.net/{TENANT}/", "aud": f"api://{APP}", "tid": TENANT, "ver": "1.0", "appid": "client",
    "scp": "orders.read", "roles": ["Orders.Admin"], "client_id": None,
}  # fmt: skip


async def identity(changes: dict[str, Any], *, app_id_uri: str | None = None) -> Principal | Challenge | None:
    authenticate = entra(TENANT, APP, app_id_uri=app_id_uri, keys=StaticKeys(public()), clock=Clock())
    return await authenticate(bearing(sign(claims(**changes), header={"typ": "JWT"})))


async def test_a_token_of_version_2_is_accepted() -> None:
    principal = await identity(V2)
    assert isinstance(principal, Principal)
    assert principal.key == (V2["iss"], "client", "alice")
    assert principal.scopes == {"orders.read", "orders.write"}
    assert principal.name == "Alice"


async def test_a_token_of_version_1_is_accepted() -> None:
    principal = await identity(V1)
    assert isinstance(principal, Principal)
    assert principal.client_id == "client"
    assert principal.roles == {"Orders.Admin"}


async def test_a_program_with_an_app_role_is_accepted() -> None:
    principal = await identity({**V2, "scp": None, "roles": ["Orders.Read.All"], "idtyp": "app"})
    assert isinstance(principal, Principal)
    assert principal.roles == {"Orders.Read.All"}


@pytest.mark.parametrize(
    "change",
    [
        {"iss": f"https://login.microsoftonline.com/{OTHER}/v2.0"},
        {"iss": f"https://login.microsoftonline.com/{OTHER}/v2.0", "tid": OTHER},
        {"iss": "https://login.microsoftonline.com/common/v2.0"},
        {"tid": OTHER},
        {"tid": None},
        {"aud": "00000003-0000-0000-c000-000000000000"},
        {"aud": "api://other"},
        {"scp": None},
        {"scp": None, "roles": []},
        {"exp": NOW - 61},
    ],
)
async def test_a_token_of_others_for_others_or_with_nothing_in_it_is_refused(change: dict[str, Any]) -> None:
    assert isinstance(await identity({**V2, **change}), Challenge)


@pytest.mark.parametrize("change", [{"nonce": "n"}, {}])
async def test_an_id_token_is_refused_even_with_roles(change: dict[str, Any]) -> None:
    assert isinstance(await identity({**V2, "azp": None, "scp": None, "roles": ["Orders.Admin"], **change}), Challenge)


async def test_the_application_id_uri_can_be_another() -> None:
    uri = "https://orders.example.com"
    assert isinstance(await identity({**V1, "aud": uri}, app_id_uri=uri), Principal)
    assert isinstance(await identity(V1, app_id_uri=uri), Challenge)


async def test_only_rs256_is_accepted() -> None:
    authenticate = entra(TENANT, APP, keys=StaticKeys(public("P-256")), clock=Clock())
    token = sign(claims(**V2), signer=key("P-256"), algorithm="ES256", header={"typ": "JWT"})
    assert isinstance(await authenticate(bearing(token)), Challenge)


def test_the_keys_are_the_tenants() -> None:
    keys = entra(TENANT.upper(), APP)._keys
    assert isinstance(keys, JWKS)
    assert keys._url == f"https://login.microsoftonline.com/{TENANT}/discovery/v2.0/keys"


@pytest.mark.parametrize(
    "tenant", ["common", "organizations", "consumers", "", "example.com", f"{{{TENANT}}}", f"{TENANT}/x"]
)
def test_a_tenant_that_is_not_one_tenant_is_refused(tenant: str) -> None:
    with pytest.raises(ValueError, match="tenant must be a GUID"):
        entra(tenant, APP)


def test_an_application_that_is_no_guid_is_refused() -> None:
    with pytest.raises(ValueError, match="client_id must be a GUID"):
        entra(TENANT, "api://orders")
