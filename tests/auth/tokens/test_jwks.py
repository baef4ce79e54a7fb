"""Keys from a URL: fetched seldom, kept while the issuer is away, and never more than a few at a time."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.authenticator import Challenge, UnavailableError
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.compact import TokenError, read
from funcmcp._auth.tokens.jwks import JWKS
from tests.auth.issuer import certificate, serving
from tests.auth.making_tokens import AUDIENCE, ISSUER, Clock, bearing, claims, key, public, sign
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.auth.issuer import Issuer

FIRST = read(sign(claims()))
SECOND = read(sign(claims(), signer=key("RSA", "second"), header={"kid": "second"}))
UNKNOWN = [read(sign(claims(), header={"kid": f"unknown-{number}"})) for number in range(20)]


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with serving() as served:
        served.publish(public())
        yield served


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def jwks(issuer: Issuer, clock: Clock) -> JWKS:
    return JWKS(issuer.url, clock=clock)


async def names(jwks: JWKS, token: Any) -> list[str | None]:
    async with asyncio.timeout(PATIENCE):
        return [verification_key.key_id for verification_key in await jwks.find(token)]


async def fetch_ended(jwks: JWKS) -> None:
    """Wait for the fetch that is under way beside the requests."""
    assert jwks._fetching is not None
    async with asyncio.timeout(PATIENCE):
        await jwks._fetching


async def test_the_keys_are_fetched_with_the_first_token_and_kept(jwks: JWKS, issuer: Issuer) -> None:
    assert issuer.requests == []
    assert [await names(jwks, FIRST) for _ in range(5)] == [["first"]] * 5
    assert len(issuer.requests) == 1
    assert issuer.requests[0].startswith("GET /keys HTTP/1.1\r\n")
    assert "accept-encoding: identity\r\n" in issuer.requests[0].lower()


async def test_many_first_tokens_at_once_make_one_fetch(jwks: JWKS, issuer: Issuer) -> None:
    results = await asyncio.gather(*(names(jwks, FIRST) for _ in range(50)))
    assert results == [["first"]] * 50
    assert len(issuer.requests) == 1


async def test_whoever_goes_away_does_not_end_the_fetch_for_the_others(jwks: JWKS, issuer: Issuer) -> None:
    issuer.open.clear()
    leaving = asyncio.create_task(names(jwks, FIRST))
    await asyncio.wait_for(issuer.asked.wait(), PATIENCE)
    staying = asyncio.create_task(names(jwks, FIRST))
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    issuer.open.set()
    assert await staying == ["first"]
    assert len(issuer.requests) == 1


async def test_a_new_key_is_seen_with_the_first_token_that_names_it(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    await names(jwks, FIRST)
    issuer.publish(public("RSA", "second"), public())
    clock.now += 30
    assert await names(jwks, SECOND) == ["second"]
    assert await names(jwks, FIRST) == ["first"]
    assert len(issuer.requests) == 2


async def test_a_key_that_was_withdrawn_stops_to_count(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    await names(jwks, FIRST)
    issuer.publish(public("RSA", "second"))
    clock.now += 300
    assert await names(jwks, FIRST) == ["first"]
    await fetch_ended(jwks)
    assert await names(jwks, FIRST) == []


async def test_a_token_of_a_withdrawn_key_is_refused_within_ten_minutes_however_often_it_comes(issuer: Issuer) -> None:
    clock = Clock()
    jwks = JWKS(issuer.url, clock=clock)
    bearer = BearerTokens(ISSUER, AUDIENCE, keys=jwks, clock=clock)
    first, late = (bearing(sign(claims(exp=clock.now + 5000, jti=name))) for name in ("first", "late"))
    assert isinstance(await bearer(first), Principal)
    issuer.publish(public("RSA", "second"))  # at once after the fetch
    clock.now += 329.9  # the last moment at which a token does not wait for the next one
    assert isinstance(await bearer(late), Principal)
    await fetch_ended(jwks)
    clock.now += 600 - 329.9
    assert [type(await bearer(token)) for token in (first, late)] == [Challenge] * 2


async def test_after_a_pause_a_token_waits_for_the_keys_of_today(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    await names(jwks, FIRST)
    issuer.publish(public("RSA", "second"))
    clock.now += 330
    assert await names(jwks, FIRST) == []


@pytest.mark.slow("It waits for a server that is away.")
async def test_nobody_waits_twice_for_an_issuer_that_is_away(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    await names(jwks, FIRST)
    issuer.status = "503 Service Unavailable"
    clock.now += 1000
    assert await names(jwks, FIRST) == ["first"]
    issuer.open.clear()
    for _ in range(20):
        clock.now += 30
        assert await names(jwks, FIRST) == ["first"]
    issuer.open.set()
    await fetch_ended(jwks)


async def test_unknown_keys_make_one_fetch_in_30_seconds(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    await names(jwks, FIRST)
    clock.now += 29.9
    assert await asyncio.gather(*(names(jwks, token) for token in UNKNOWN)) == [[]] * len(UNKNOWN)
    assert len(issuer.requests) == 1
    clock.now += 0.1
    assert await asyncio.gather(*(names(jwks, token) for token in UNKNOWN)) == [[]] * len(UNKNOWN)
    assert await names(jwks, UNKNOWN[0]) == []
    assert len(issuer.requests) == 2


async def test_a_known_key_does_not_wait_for_the_fetch_that_an_unknown_one_caused(
    jwks: JWKS, issuer: Issuer, clock: Clock
) -> None:
    await names(jwks, FIRST)
    clock.now += 30
    issuer.open.clear()
    issuer.asked.clear()
    waiting = asyncio.create_task(names(jwks, UNKNOWN[0]))
    await asyncio.wait_for(issuer.asked.wait(), PATIENCE)
    assert await names(jwks, FIRST) == ["first"]
    assert not waiting.done()
    issuer.open.set()
    assert await waiting == []


async def test_old_keys_are_fetched_anew_while_nobody_waits(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    await names(jwks, FIRST)
    issuer.open.clear()
    clock.now += 299
    assert await names(jwks, FIRST) == ["first"]
    assert jwks._fetching is not None
    assert jwks._fetching.done()
    clock.now += 1
    assert await names(jwks, FIRST) == ["first"]
    assert not jwks._fetching.done()
    issuer.open.set()
    await fetch_ended(jwks)
    assert await names(jwks, FIRST) == ["first"]
    assert len(issuer.requests) == 2


GOOD_BODY = json.dumps({"keys": [public()]}).encode()
BAD_ANSWERS: dict[str, dict[str, Any]] = {
    "an error": {"status": "500 Internal Server Error", "body": GOOD_BODY},
    "a redirect": {"status": "302 Found", "fields": ["Location: /elsewhere"], "body": GOOD_BODY},
    "no content": {"status": "204 No Content"},
    "no JSON": {"body": b"<html>"},
    "no set": {"body": b'{"issuer":"x"}'},
    "no object": {"body": b"[]"},
    "no list": {"body": b'{"keys":{}}'},
    "no keys": {"body": b'{"keys":[]}'},
    "no usable keys": {"body": b'{"keys":[1,null,{},{"kty":"RSA"},{"kty":"oct","k":"AAAA"}]}'},
    "too deep": {"body": b"[" * 100_000},
    "too much": {"body": GOOD_BODY + b" " * 300_000},
    "compressed": {"body": gzip.compress(GOOD_BODY), "fields": ["Content-Encoding: gzip"]},
    "no HTTP": {"status": "\r\n\r\n"},
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=list(BAD_ANSWERS))
class TestBadAnswer:
    async def test_keys_stay_good_after_it(
        self, jwks: JWKS, issuer: Issuer, clock: Clock, answer: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        await names(jwks, FIRST)
        vars(issuer).update(answer)
        clock.now += 300
        assert await names(jwks, FIRST) == ["first"]
        await fetch_ended(jwks)
        assert await names(jwks, FIRST) == ["first"]
        assert await names(jwks, UNKNOWN[0]) == []
        assert len(issuer.requests) == 2
        assert [record.getMessage().split(" reason=")[0] for record in caplog.records if record.name == "funcmcp"] == [
            f"event=jwks_fetch_failed url={issuer.url}"
        ]
        clock.now += 30
        issuer.fields = []
        issuer.publish(public("RSA", "second"))
        assert await names(jwks, SECOND) == ["second"]

    async def test_without_keys_every_token_is_refused_until_a_later_fetch(
        self, jwks: JWKS, issuer: Issuer, clock: Clock, answer: dict[str, Any]
    ) -> None:
        vars(issuer).update(answer)
        bearer = BearerTokens(ISSUER, AUDIENCE, keys=jwks, clock=Clock())
        token = bearing(sign(claims()))
        for _ in range(3):
            with pytest.raises(UnavailableError, match="The keys of the issuer are not available"):
                await bearer(token)
        assert len(issuer.requests) == 1
        clock.now += 5
        issuer.fields = []
        issuer.publish(public())
        assert isinstance(await bearer(token), Principal)


async def test_a_redirect_is_not_followed_and_the_log_says_why_there_are_no_keys(
    jwks: JWKS, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.status, issuer.fields = "302 Found", [f"Location: {issuer.url}2"]
    with pytest.raises(TokenError):
        await names(jwks, FIRST)
    assert len(issuer.requests) == 1
    assert caplog.messages == [f"event=jwks_fetch_failed url={issuer.url} reason=status 302"]


async def test_an_issuer_that_does_not_answer_is_given_up(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.open.clear()
    jwks = JWKS(issuer.url, timeout=0.05)
    with pytest.raises(TokenError, match="are not available"):
        await names(jwks, FIRST)
    assert caplog.records[-1].getMessage().startswith("event=jwks_fetch_failed")


async def test_an_issuer_that_answers_too_slowly_is_given_up(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.body, issuer.drips = b" " * 200_000, True
    jwks = JWKS(issuer.url, timeout=0.05)
    with pytest.raises(TokenError, match="are not available"):
        await names(jwks, FIRST)
    assert caplog.records[-1].getMessage().endswith("reason=no answer in time (TimeoutError)")


async def test_only_an_issuer_that_an_authority_vouches_for_is_believed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    async with serving(tls) as issuer:
        issuer.publish(public())
        with pytest.raises(TokenError, match="are not available"):
            await names(JWKS(issuer.url, clock=clock), FIRST)
        assert issuer.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        assert await names(JWKS(issuer.url, clock=clock), FIRST) == ["first"]


async def test_an_issuer_that_is_not_there_is_like_one_that_fails(clock: Clock) -> None:
    async with serving() as gone:
        jwks = JWKS(gone.url, clock=clock)
    with pytest.raises(TokenError, match="are not available"):
        await names(jwks, FIRST)


async def test_keys_are_not_used_for_more_than_a_day_without_the_issuer(
    jwks: JWKS, issuer: Issuer, clock: Clock
) -> None:
    await names(jwks, FIRST)
    issuer.status = "503 Service Unavailable"
    clock.now += 86_400
    assert await names(jwks, FIRST) == ["first"]
    await fetch_ended(jwks)
    clock.now += 30
    with pytest.raises(TokenError, match="are not available"):
        await names(jwks, FIRST)


async def test_keys_that_are_not_for_us_are_passed_over(jwks: JWKS, issuer: Issuer) -> None:
    issuer.publish(
        public("oct", "secret"),
        public("RSA", "encrypting", use="enc"),
        {"kty": "future", "kid": "x"},
        key("RSA", "private").as_dict(private=True),
        public("P-256", "twice"),
        public("P-256", "twin", kid="twice"),
        public(),
    )
    await names(jwks, FIRST)
    assert [verification_key.key_id for verification_key in jwks._keys] == ["first"]


async def test_a_published_secret_signs_nothing(jwks: JWKS, issuer: Issuer) -> None:
    issuer.publish(public("oct"), public())
    forged = read(sign(claims(), signer=key("oct"), algorithm="HS256"))
    assert await names(jwks, forged) == []
    with pytest.raises(ValueError, match="require secrets"):
        BearerTokens(ISSUER, AUDIENCE, keys=jwks, rules=TokenRules(algorithms=["HS256"]))


async def test_only_a_token_that_could_be_ours_makes_us_fetch(jwks: JWKS, issuer: Issuer) -> None:
    bearer = BearerTokens(ISSUER, AUDIENCE, keys=jwks, clock=Clock())
    for changes in ({"iss": "https://evil.example"}, {"aud": "other"}, {"exp": 1}, {"sub": ""}):
        assert isinstance(await bearer(bearing(sign(claims(**changes)))), Challenge)
    assert issuer.requests == []


async def test_a_fetch_that_another_event_loop_left_behind_is_nobodys(jwks: JWKS, issuer: Issuer, clock: Clock) -> None:
    issuer.open.clear()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(jwks.find(FIRST))
    await asyncio.to_thread(loop.run_until_complete, asyncio.wait([waiting], timeout=0.05))
    left = jwks._fetching
    assert left is not None
    assert not left.done()
    issuer.open.set()
    clock.now += 5
    assert await names(jwks, FIRST) == ["first"]
    left.cancel()
    await asyncio.to_thread(loop.run_until_complete, asyncio.wait([waiting, left]))
    loop.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "keys",
        "/keys",
        "http://login.example.com/keys",
        "http://127.0.0.1.example.com/keys",
        "http://10.0.0.1/keys",
        "ftp://127.0.0.1/keys",
        "file:///etc/passwd",
        "https://",
        "https://user@login.example.com/keys",
        "https://login.example.com/keys#x",
        "https://login.example.com/a b",
        'https://login.example.com/"',
        "https://login.example.com/\r\n",
        "https://[::1/keys",
    ],
)
def test_keys_come_only_over_https_or_from_this_machine(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        JWKS(url)


@pytest.mark.parametrize(
    "url", ["https://a.example/keys", "http://localhost:8000/keys", "http://[::1]:1/k", "http://127.9.9.9/"]
)
def test_a_good_url_is_taken(url: str) -> None:
    JWKS(url)


@pytest.mark.parametrize("lifetime", [299, 0, -1, float("nan")])
def test_keys_are_kept_for_at_least_five_minutes(lifetime: float) -> None:
    with pytest.raises(ValueError, match="at least 300"):
        JWKS("https://login.example.com/keys", lifetime=lifetime)


async def test_keys_of_an_issuer_with_a_private_authority_are_fetched_with_its_file(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    async with serving(tls) as issuer:
        issuer.publish(public())
        assert await names(JWKS(issuer.url, ca_file=file), FIRST) == ["first"]


def test_a_missing_file_of_authorities_and_a_host_that_is_not_named_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"JWKS\.ca_file can't be used"):
        JWKS("https://login.example.com/keys", ca_file=tmp_path / "missing.pem")
    with pytest.raises(ValueError, match="must begin with https"):
        JWKS("http://keycloak:8080/keys", insecure_hosts=["other:8080"])


def test_the_url_may_be_at_a_host_without_tls_that_is_named(caplog: pytest.LogCaptureFixture) -> None:
    JWKS("http://keycloak:8080/keys", insecure_hosts=["keycloak:8080"])
    assert "JWKS.insecure_hosts: requests to keycloak:8080 go without TLS" in caplog.text
