"""Clients with and without a secret at the token endpoint and the revocation endpoint."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

import pytest

from funcmcp.state import KeyRing, MemorySignIns
from tests.oauth_proxy.stage import BACK, KEYS, VERIFIER, Browser, Stage

if TYPE_CHECKING:
    from funcmcp.auth import ClientWithSecret
    from tests.oauth_proxy.stage import Answer

POWER = "https://global.consent.azure-apim.net/redirect/orders"


def basic(client_id: str, secret: str) -> str:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


async def post(stage: Stage, path: str, form: dict[str, str], authorization: str | None = None) -> Answer:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    if authorization is not None:
        headers["authorization"] = authorization
    return await stage.send("POST", f"/oauth/{path}", body=urlencode(form).encode(), headers=headers)


async def exchange(
    stage: Stage, code: str, authorization: str | None = None, redirect_uri: str = BACK, **fields: str
) -> Answer:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": VERIFIER}
    return await post(stage, "token", form | fields, authorization)


@pytest.fixture(params=[False, True], ids=["without a store", "with a store"])
async def stage(request: pytest.FixtureRequest) -> Stage:
    return await Stage(store=MemorySignIns() if request.param else None).with_client()


def with_secret(stage: Stage, name: str = "Power Platform") -> ClientWithSecret:
    """Make a client with a secret, which is the client of the stage from now on."""
    client = stage.proxy.client(name, [POWER])
    stage.client_id = client.client_id
    return client


@pytest.mark.parametrize("secret", ["", "secret", "a:b"])
async def test_a_public_client_may_send_any_secret_in_either_way(stage: Stage, secret: str) -> None:
    by_header = await exchange(stage, await stage.code(), basic(stage.client_id, secret))
    assert by_header.status == 200, by_header.text
    fields = {"client_id": stage.client_id, "client_secret": secret}
    assert (await exchange(stage, await stage.code(), None, **fields)).status == 200


async def test_a_client_with_a_secret_signs_in_and_refreshes_with_it(stage: Stage) -> None:
    client = with_secret(stage)
    form = {"client_id": client.client_id, "client_secret": client.client_secret}
    header = basic(*client)
    for authorization, fields in ((header, {}), (None, form), (header, {"client_id": client.client_id})):
        code = await stage.code(redirect_uri=POWER)
        answer = await exchange(stage, code, authorization, POWER, **fields)
        assert answer.status == 200, answer.text
        refresh = {"grant_type": "refresh_token", "refresh_token": answer.json["refresh_token"]}
        answer = await post(stage, "token", refresh | fields, authorization)
        assert answer.status == 200, answer.text
        token = {"token": answer.json["refresh_token"]}
        assert (await post(stage, "revoke", token | fields, authorization)).status == 200
        refresh["refresh_token"] = answer.json["refresh_token"]
        assert (await post(stage, "token", refresh | fields, authorization)).json["error"] == "invalid_grant"


NO_PKCE = {"code_challenge": None, "code_challenge_method": None}


async def test_a_platform_without_pkce_signs_in_with_a_pair_of_its_own(stage: Stage) -> None:
    client = stage.proxy.client("Power Platform", [POWER], pkce=False)
    assert client != stage.proxy.client("Power Platform", [POWER])
    stage.client_id = client.client_id
    form = {"grant_type": "authorization_code", "redirect_uri": POWER}
    for fields, status in (({}, 200), ({"code_verifier": VERIFIER}, 400)):
        code = await stage.code(redirect_uri=POWER, **NO_PKCE)
        assert (await post(stage, "token", form | {"code": code} | fields, basic(*client))).status == status
    code = await stage.code(redirect_uri=POWER, **NO_PKCE)
    assert (await post(stage, "token", form | {"code": code}, basic(client.client_id, "wrong"))).status == 401


async def test_a_platform_with_such_a_pair_may_use_pkce(stage: Stage) -> None:
    client = stage.proxy.client("Power Platform", [POWER], pkce=False)
    stage.client_id = client.client_id
    form = {"grant_type": "authorization_code", "redirect_uri": POWER, "code": await stage.code(redirect_uri=POWER)}
    assert (await post(stage, "token", form, basic(*client))).status == 400
    form["code"] = await stage.code(redirect_uri=POWER)
    assert (await post(stage, "token", form | {"code_verifier": VERIFIER}, basic(*client))).status == 200
    answer = await stage.authorize(redirect_uri=POWER, code_challenge=None)
    assert answer.query["error"] == "invalid_request"


@pytest.mark.parametrize("changes", [NO_PKCE, {"code_challenge": ""}, {"code_challenge": "", **NO_PKCE}])
async def test_every_other_client_needs_pkce(stage: Stage, changes: dict[str, Any]) -> None:
    assert (await stage.authorize(**changes)).query["error"] == "invalid_request"
    with_secret(stage)
    assert (await stage.authorize(redirect_uri=POWER, **changes)).query["error"] == "invalid_request"


async def test_a_user_reads_its_name_and_where_it_leads(stage: Stage) -> None:
    with_secret(stage)
    page = await stage.authorize(Browser(), redirect_uri=POWER)
    assert "Power Platform" in page.text
    assert "global.consent.azure-apim.net" in page.text
    assert (await stage.authorize(redirect_uri=BACK)).status == 400


@pytest.mark.parametrize(
    "wrong",
    ["", "secret", "right-but-short", "upper", "of another client", "of another server", "longer", "é", "\x00"],
)
@pytest.mark.parametrize("in_form", [False, True])
async def test_nothing_is_issued_or_revoked_without_the_right_secret(stage: Stage, wrong: str, in_form: bool) -> None:
    other_server = stage.instance(KeyRing([b"another key" * 4]))
    other = stage.proxy.client("Another", [POWER]).client_secret
    client = with_secret(stage)
    secret = {
        "right-but-short": client.client_secret[:-1],
        "upper": client.client_secret.swapcase(),
        "of another client": other,
        "of another server": other_server.client("Power Platform", [POWER]).client_secret,
        "longer": client.client_secret + "A",
    }.get(wrong, wrong)
    fields = {"client_id": client.client_id, "client_secret": secret} if in_form else {}
    header = None if in_form else basic(client.client_id, secret)
    code = await stage.code(redirect_uri=POWER)
    refused = await exchange(stage, code, header, POWER, **fields)
    assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    assert refused.header("www-authenticate") == (None if in_form else "Basic")
    good = await exchange(stage, code, basic(*client), POWER)  # the code was not used up
    token = good.json["refresh_token"]
    refresh = {"grant_type": "refresh_token", "refresh_token": token}
    assert (await post(stage, "token", refresh | fields, header)).status == 401
    assert (await post(stage, "revoke", {"token": token} | fields, header)).status == 401
    assert (await post(stage, "token", refresh, basic(*client))).status == 200


async def test_a_code_of_a_client_with_a_secret_is_of_no_use_to_another_client(stage: Stage) -> None:
    public = stage.client_id
    client = with_secret(stage)
    code = await stage.code(redirect_uri=POWER)
    refused = await exchange(stage, code, None, POWER, client_id=public)
    assert refused.json["error"] == "invalid_grant"
    assert (await exchange(stage, code, basic(*client), POWER)).status == 200


@pytest.mark.parametrize(
    ("header", "fields", "status", "error"),
    [
        ("right", {"client_id": "another"}, 401, "invalid_client"),
        ("right", {"client_id": "public"}, 401, "invalid_client"),
        ("public", {"client_id": "right"}, 401, "invalid_client"),
        ("right", {"client_secret": "right"}, 400, "invalid_request"),
        ("right", {"client_secret": "another"}, 400, "invalid_request"),
        ("Basic %", {}, 401, "invalid_client"),
        ("Basic", {"client_id": "right"}, 401, "invalid_client"),
        ("Bearer right", {"client_id": "right"}, 401, "invalid_client"),
        ("Basic bm9jb2xvbg==", {}, 401, "invalid_client"),
        ("Basic /////w==", {}, 401, "invalid_client"),
        (None, {}, 401, "invalid_client"),
        (None, {"client_secret": "right"}, 401, "invalid_client"),
        (None, {"client_id": "right"}, 401, "invalid_client"),
    ],
)
async def test_credentials_that_contradict_each_other_are_refused(
    stage: Stage, header: str | None, fields: dict[str, str], status: int, error: str
) -> None:
    public = stage.client_id
    client = with_secret(stage)
    values = {"right": basic(*client), "public": basic(public, ""), "Bearer right": f"Bearer {client.client_secret}"}
    form = dict(fields)
    ids = {"right": client.client_id, "public": public}
    if "client_id" in form:
        form["client_id"] = ids.get(form["client_id"], form["client_id"])
    if form.get("client_secret") == "right":
        form["client_secret"] = client.client_secret
    code = await stage.code(redirect_uri=POWER)
    answer = await exchange(stage, code, values.get(header or "", header), POWER, **form)
    assert (answer.status, answer.json["error"]) == (status, error)


async def test_a_header_without_an_id_leaves_it_to_the_form(stage: Stage) -> None:
    answer = await exchange(stage, await stage.code(), basic("", "secret"), client_id=stage.client_id)
    assert answer.status == 200


async def test_a_header_for_another_purpose_does_not_disturb_a_public_client(stage: Stage) -> None:
    answer = await exchange(stage, await stage.code(), "Bearer an-old-token", client_id=stage.client_id)
    assert answer.status == 200


def test_a_client_is_the_same_one_each_time_and_at_each_instance(stage: Stage) -> None:
    client = stage.proxy.client("Power Platform", [POWER])
    assert client == stage.proxy.client("Power Platform", [POWER]) == stage.instance().client("Power Platform", [POWER])
    others = [stage.proxy.client("Power", [POWER]), stage.proxy.client("Power Platform", [POWER, BACK])]
    assert len({client, *others}) == 3
    assert len({secret for _, secret in (client, *others)}) == 3
    assert len(client.client_id) < 300
    assert client.client_secret not in client.client_id


async def test_a_client_outlives_a_new_key_in_front_of_the_earlier_one(stage: Stage) -> None:
    client = with_secret(stage)
    stage.proxy = stage.instance(KeyRing([b"a newer key of the tests" * 2, b"the key of the tests" * 2]))
    assert (await exchange(stage, await stage.code(redirect_uri=POWER), basic(*client), POWER)).status == 200
    renewed = stage.proxy.client("Power Platform", [POWER])
    assert renewed != client
    mixed = basic(client.client_id, renewed.client_secret)
    refused = await exchange(stage, await stage.code(redirect_uri=POWER), mixed, POWER)
    assert refused.status == 401
    stage.proxy = stage.instance(KeyRing([b"a newer key of the tests" * 2]))
    assert (await stage.authorize(redirect_uri=POWER)).status == 400


def of_this_start() -> KeyRing:
    """Return the keys that a command gives its workers, and that its next start does not have."""
    ring = KeyRing([b"the key of a command" * 2])
    ring.lasting = False
    return ring


@pytest.mark.parametrize(
    ("options", "uris", "error", "text"),
    [
        ({"keys": KeyRing()}, [POWER], RuntimeError, "FUNCMCP_KEYS"),
        ({"keys": of_this_start()}, [POWER], RuntimeError, "FUNCMCP_KEYS"),
        ({}, [], ValueError, "at least one address"),
        ({}, ["http://power.example.com/"], ValueError, "http"),
        ({}, ["javascript:alert(1)"], ValueError, "redirect"),
        ({}, POWER, TypeError, "list"),
        ({"clients": ["https://claude.ai"]}, [POWER], ValueError, "does not allow the redirect URIs"),
    ],
)
def test_a_client_that_could_not_sign_in_is_not_made(
    options: dict[str, Any], uris: Any, error: type[Exception], text: str
) -> None:
    proxy = Stage().instance(**options)
    with pytest.raises(error, match=text):
        proxy.client("Power Platform", uris)


async def test_the_list_of_clients_ends_a_client_that_was_made_before(stage: Stage) -> None:
    client = with_secret(stage)
    code = await stage.code(redirect_uri=POWER)
    stage.proxy = stage.instance(clients=["https://claude.ai"])
    refused = await exchange(stage, code, basic(*client), POWER)
    assert (refused.status, refused.json["error"]) == (401, "invalid_client")


def test_the_id_of_a_client_of_one_kind_is_not_one_of_the_other() -> None:
    proxy = Stage().proxy
    client = proxy.client("Power Platform", [POWER])
    payload = KEYS.of("oauth https://orders.example.com/mcp").open("oauth client", client.client_id)
    assert payload is None


async def test_too_long_ids_are_not_read(stage: Stage) -> None:
    answer = await exchange(stage, "code", basic("1." + "A" * 5000, "secret"))
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
