"""Requests with tokens that are bound to a key (DPoP), at a server that requires them."""

from __future__ import annotations

import itertools
import json
import logging
from time import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import HTTPOptions, Limits, MCPServer
from funcmcp._client.oauth import parameters_of
from funcmcp._serving.composition import runtime_of
from funcmcp._state.replays import ENTRY_BYTES
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._transports.http.messages import HttpRequest, RequestHeader
from funcmcp.auth import APIKeys, Auth, BearerTokens, ProtectedResource, StaticKeys, first_of
from funcmcp.http import Response
from funcmcp.state import MemoryState
from tests.auth.making_proofs import bound, proof
from tests.auth.making_tokens import AUDIENCE, ISSUER, Clock, key, public, sign
from tests.auth.making_tokens import claims as token_claims

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse

TOKEN = bound()
COUNT = itertools.count()


def fresh(token: str = TOKEN, **changes: Any) -> str:
    """Return a proof that was made now and never used."""
    usual: dict[str, Any] = {"jti": f"proof-{next(COUNT)}", "iat": int(time())}
    return proof(token, **usual | changes)


class Shop:
    """A server that requires bound tokens.

    Args:
        mode: The option of its tokens.
        nonces: Whether proofs need nonces.
        path: The path of the endpoint.
        options: Options of the server.
    """

    def __init__(
        self,
        mode: Any = "required",
        *,
        nonces: bool = False,
        path: str = "/mcp",
        resource: str = AUDIENCE,
        **options: Any,
    ) -> None:
        tokens = BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), dpop=mode, dpop_nonces=nonces, clock=Clock())
        metadata = ProtectedResource(resource=resource, authorization_servers=[ISSUER])
        auth = Auth(first_of(tokens, APIKeys({"machine": "k" * 40})), resource=metadata)
        http = HTTPOptions(path=path, allowed_hosts=["*"])
        self.mcp = MCPServer("Shop", auth=auth, http=http, sessions=None, **options)
        self.path = path

        async def report(_request: object) -> Response:
            return Response("done")

        self.mcp.custom_route("/report", methods=["GET", "POST"])(report)

    async def send(
        self, *fields: tuple[str, str], method: str = "POST", path: str | None = None, token: str | None = TOKEN
    ) -> HttpResponse:
        """Send a ping, or a request to another path."""
        lines = [("host", "127.0.0.1"), ("content-type", "application/json"), *fields]
        if token is not None:
            lines.append(("authorization", f"DPoP {token}"))
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in lines]
        request = HttpRequest(method, path or self.path, pairs, "127.0.0.1", RequestHeader(pairs))
        request.body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        return await runtime_of(self.mcp).exchange(request)

    async def status(self, value: str, **changes: Any) -> int:
        """Return the status of a request with a proof."""
        return (await self.send(("dpop", value), **changes)).status


def field(response: HttpResponse, name: str) -> str | None:
    return dict(response.headers).get(name)


def error_of(response: HttpResponse) -> str | None:
    """Return the error in the challenge of a refusal with 401."""
    assert response.status == 401
    value = field(response, "www-authenticate") or ""
    assert value.startswith("DPoP ")
    return parameters_of(value).get("error")


async def test_a_proof_is_good_for_one_request() -> None:
    shop = Shop()
    value = fresh()
    assert await shop.status(value) == 200
    for _ in range(3):
        response = await shop.send(("dpop", value))
        assert error_of(response) == "invalid_dpop_proof"
        assert "used before" in json.loads(response.body)["error"]["message"]  # type: ignore[arg-type]
    assert await shop.status(fresh()) == 200


async def test_a_repeated_header_needs_a_new_proof_as_well() -> None:
    shop, value = Shop(), fresh()
    pairs = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    pairs += [(b"authorization", f"DPoP {TOKEN}".encode()), (b"dpop", value.encode())]
    header = RequestHeader(pairs)  # as a connection shares it between its requests
    statuses = []
    for _ in range(3):
        request = HttpRequest("POST", "/mcp", pairs, "127.0.0.1", header)
        request.body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        statuses.append((await runtime_of(shop.mcp).exchange(request)).status)
    assert statuses == [200, 401, 401]


async def test_every_other_request_is_refused_with_the_reason() -> None:
    shop = Shop()
    thief = key("P-256", "second")
    unbound = sign(token_claims())
    refused = {
        "no proof": await shop.send(),
        "two proofs": await shop.send(("dpop", fresh()), ("dpop", fresh())),
        "two proofs in one line": await shop.send(("dpop", f"{fresh()}, {fresh()}")),
        "two equal proofs": await shop.send(("dpop", fresh(jti="a")), ("dpop", fresh(jti="a"))),
        "another key": await shop.send(("dpop", fresh(signer=thief))),
        "another method": await shop.send(("dpop", fresh(htm="GET"))),
        "another URL": await shop.send(("dpop", fresh(htu="https://evil.example.com/mcp"))),
        "another token": await shop.send(("dpop", fresh(bound(sub="bob")))),
        "an old proof": await shop.send(("dpop", fresh(iat=int(time()) - 303))),
        "a proof of the future": await shop.send(("dpop", fresh(iat=int(time()) + 303))),
        "not ASCII": await shop.send(("dpop", f"{fresh()}\u00e9")),
        "long": await shop.send(("dpop", "a" * 30_000)),
    }
    assert {name: error_of(answer) for name, answer in refused.items()} == dict.fromkeys(refused, "invalid_dpop_proof")
    wrong_tokens = {
        "another audience": await shop.send(("dpop", fresh()), token=bound(aud="https://other.example.com")),
        "not bound": await shop.send(("dpop", fresh(unbound)), token=unbound),
        "as bearer": await shop.send(("authorization", f"Bearer {TOKEN}"), ("dpop", fresh()), token=None),
        "unbound as bearer": await shop.send(("authorization", f"Bearer {unbound}"), token=None),
    }
    assert {name: error_of(answer) for name, answer in wrong_tokens.items()} == dict.fromkeys(
        wrong_tokens, "invalid_token"
    )
    assert error_of(await shop.send(token=None)) is None
    twice = await shop.send(("authorization", f"DPoP {TOKEN}"), ("dpop", fresh()))
    assert twice.status == 400
    assert (await shop.send(("x-api-key", "k" * 40), token=None)).status == 200
    assert await shop.status(fresh(iat=int(time()) - 290)) == 200
    assert await shop.status(f" {fresh()}\t") == 200


async def test_what_a_refused_request_has_sent_is_neither_in_the_log_nor_in_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    shop = Shop()
    mark = "canary\r\nevent=forged"
    values = [
        fresh(htu=f"https://{mark}/"),
        fresh(htm=mark),
        fresh(jti=mark, htm="GET"),
        fresh(header={"kid": mark, "typ": mark}),
        fresh(header={"alg": mark}),
        fresh(header={"jwk": {"kty": mark}}),
        f"canary.{fresh()}",
    ]
    for value in values:
        response = await shop.send(("dpop", value), ("x-other", "canary"))
        assert "canary" not in f"{response.headers}{response.body!r}"
    assert "canary" not in caplog.text


async def test_the_url_is_that_of_the_configuration_whatever_proxies_and_clients_say() -> None:
    shop = Shop()
    lies = [("x-forwarded-host", "evil.example.com"), ("x-forwarded-proto", "http"), ("forwarded", "host=evil")]
    assert (await shop.send(("dpop", fresh()), *lies)).status == 200
    for url in ("https://evil.example.com/mcp", "http://127.0.0.1/mcp", "http://orders.example.com/mcp"):
        response = await shop.send(("dpop", fresh(htu=url)), *lies)
        assert error_of(response) == "invalid_dpop_proof"
    assert await shop.status(fresh(htu="HTTPS://Orders.Example.com:443/%6dcp?a=b")) == 200


@pytest.mark.parametrize(
    ("resource", "path", "route"),
    [
        (AUDIENCE, "/mcp", "https://orders.example.com/report"),
        ("https://orders.example.com/api/mcp", "/mcp", "https://orders.example.com/api/report"),
        ("https://orders.example.com/orders", "/mcp", "https://orders.example.com/report"),
        ("https://orders.example.com/", "/", "https://orders.example.com/report"),
    ],
)
async def test_custom_routes_are_below_the_public_url(resource: str, path: str, route: str) -> None:
    shop = Shop(path=path, resource=resource)
    assert await shop.status(fresh(htu=resource)) == 200
    assert await shop.status(fresh(htu=route), path="/report") == 200
    assert await shop.status(fresh(htu=route, htm="GET"), path="/report", method="GET") == 200
    assert await shop.status(fresh(htu=resource), path="/report") == 401
    assert await shop.status(fresh(htu=route)) == 401


async def test_an_encoded_slash_in_the_path_of_a_custom_route_is_not_a_slash() -> None:
    shop = Shop()

    async def file(_request: object) -> Response:
        return Response("done")

    shop.mcp.custom_route("/files/{name}", methods=["GET"])(file)
    origin = "https://orders.example.com"
    statuses = {}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=shop.mcp), base_url="http://127.0.0.1") as client:
        for path in ("/files/a%2Fb", "/files/a%2fb", "/files/a/b", "/files/a@b;c%20d"):
            fields = {"authorization": f"DPoP {TOKEN}", "dpop": fresh(htu=origin + path, htm="GET")}
            statuses[path] = (await client.get(path, headers=fields)).status_code
    assert statuses == {"/files/a%2Fb": 200, "/files/a%2fb": 200, "/files/a/b": 404, "/files/a@b;c%20d": 200}
    value = fresh(htu=f"{origin}/files/a@b", htm="GET")  # and without the path as it was sent
    assert await shop.status(value, path="/files/a@b", method="GET") == 200


async def test_the_endpoint_may_get_another_path_before_the_server_begins() -> None:
    shop = Shop(resource="https://orders.example.com/api/shop")
    runtime_of(shop.mcp).change_endpoints(HTTPOptions(path="/shop", allowed_hosts=["*"]))
    assert await shop.status(fresh(htu="https://orders.example.com/api/shop"), path="/shop") == 200
    assert await shop.status(fresh(htu="https://orders.example.com/api/report"), path="/report") == 200


async def test_a_nonce_is_asked_for_and_good_for_several_proofs() -> None:
    shop = Shop(nonces=True)
    response = await shop.send(("dpop", fresh()))
    assert error_of(response) == "use_dpop_nonce"
    nonce = field(response, "dpop-nonce")
    assert nonce is not None
    for _ in range(2):
        assert await shop.status(fresh(nonce=nonce)) == 200
    value = fresh(nonce=nonce)
    assert [await shop.status(value) for _ in range(2)] == [200, 401]
    assert error_of(await shop.send(("dpop", fresh(nonce="wrong")))) == "use_dpop_nonce"
    assert error_of(await shop.send(("dpop", fresh(nonce=nonce, htm="GET")))) == "invalid_dpop_proof"


def test_nonces_of_a_random_key_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    for has_nonces, count in ((False, 0), (True, 1)):
        runtime = runtime_of(Shop(nonces=has_nonces).mcp)
        runtime.on_listening("192.0.2.1")
        assert caplog.text.count("its nonces can only be used by this process") == count


async def test_beside_bearer_tokens_each_challenge_names_both_schemes() -> None:
    shop = Shop("allowed")
    assert await shop.status(fresh()) == 200
    unbound = sign(token_claims())
    assert (await shop.send(("authorization", f"Bearer {unbound}"), token=None)).status == 200
    response = await shop.send(token=None)
    value = field(response, "www-authenticate") or ""
    assert value.startswith("Bearer resource_metadata=")
    assert ", DPoP resource_metadata=" in value
    response = await shop.send(("authorization", f"Bearer {TOKEN}"), token=None)
    assert response.status == 401
    assert ', DPoP error="invalid_token"' in (field(response, "www-authenticate") or "")


async def test_a_flood_of_proofs_takes_up_the_memory_of_its_principal_alone() -> None:
    shop = Shop(limits=Limits(memory_bytes_per_principal=40 * ENTRY_BYTES))
    statuses = [await shop.status(fresh()) for _ in range(30)]
    assert statuses == [200] * 20 + [429] * 10
    bob = bound(sub="bob")
    assert await shop.status(fresh(bob), token=bob) == 200
    for wrong in (fresh(htm="GET"), fresh(signer=key("P-256", "second")), fresh(bob)):
        assert await shop.status(wrong) == 401  # takes up nothing, so there is no need for room
    load = runtime_of(shop.mcp).server.load
    assert load.proofs.used == 21 * ENTRY_BYTES


class SharedState(MemoryState):
    """A store that several servers share; it is away if a test says so."""

    shared = True
    away = False

    async def take(self, key: str, value: str, seconds: float) -> bool:
        if self.away:
            raise StoreUnavailableError(7, store="store of state")
        return await super().take(key, value, seconds)


async def test_a_shared_store_of_state_makes_a_proof_good_for_one_instance() -> None:
    store = SharedState()
    first, second = Shop(state=store), Shop(state=store)
    value = fresh()
    assert [await first.status(value), await second.status(value)] == [200, 401]
    alone, other = Shop(), Shop(state=MemoryState())
    value = fresh()
    assert [await alone.status(value), await other.status(value)] == [200, 200]  # each process has a memory of its own
    store.away = True
    response = await first.send(("dpop", fresh()))
    assert (response.status, field(response, "retry-after")) == (503, "7")


async def test_the_credentials_of_a_connection_stay_valid_with_the_proof_that_opened_it() -> None:
    shop = Shop()
    authentication = runtime_of(shop.mcp)._authentication
    assert authentication is not None
    pairs = [(b"authorization", f"DPoP {TOKEN}".encode()), (b"dpop", fresh(htm="GET").encode())]
    request = HttpRequest("GET", "/mcp", pairs, "127.0.0.1")
    assert await authentication.authenticate(request) is None
    assert [await authentication.is_still_valid(request) for _ in range(3)] == [True] * 3
    assert await authentication.authenticate(request) is not None
    changed = HttpRequest("GET", "/mcp", [pairs[0], (b"dpop", fresh(htm="POST").encode())], "127.0.0.1")
    changed.principal = request.principal
    assert not await authentication.is_still_valid(changed)
