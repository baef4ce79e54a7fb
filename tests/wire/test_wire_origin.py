"""Host and Origin: the defence against DNS rebinding, on every method and path, before the body is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._transports.http.options import HTTPOptions
from tests import rules
from tests.wire.offering import offer
from tests.wire.peer import ERAS, HANDSHAKE, PER_REQUEST, Peer, check, connect, exchange, initialize, to_bytes

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer

LOOPBACK = ("127.0.0.1", 8000)

EVIL_HOSTS = [
    "evil.com",
    "evil.com:8000",
    "localhost.evil.com",
    "localhost.evil.com:8000",
    "127.0.0.1.evil.com",
    "127.0.0.1.nip.io:8000",
    "evil-localhost",
    "evillocalhost",
    "localhostevil",
    "localhost.",
    "localhost.:8000",
    "127.0.0.1.",
    "user@localhost",
    "localhost@evil.com",
    "127.0.0.1:8000@evil.com",
    "evil.com:127.0.0.1",
    "127.0.0.1:8000:8000",
    "localhost:8000.evil.com",
    "localhost:evil",
    "localhost:-1",
    "localhost:8000000",
    "localhost/",
    "localhost/evil.com",
    "localhost#evil.com",
    "localhost?evil.com",
    "localhost evil.com",
    "localhost,evil.com",
    "evil.com, localhost",
    "http://localhost",
    "0.0.0.0",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "[::]",
    "[::1",
    "::1]",
    "[evil.com]",
    "[::1].evil.com",
    "[::1]evil.com",
    "*",
    "null",
    "l\xf6calhost",
    "loc\x00alhost",
    "10.0.0.1",
    "169.254.169.254",
    "xn--localhost",
    "",
    " ",
]
GOOD_HOSTS = [
    "127.0.0.1",
    "127.0.0.1:8000",
    "localhost",
    "localhost:8000",
    "LOCALHOST:8000",
    "LocalHost",
    "[::1]:8000",
    "[::1]",
    "[0:0:0:0:0:0:0:1]:8000",
    "127.0.0.2:8000",
]
EVIL_ORIGINS = [
    "null",
    "NULL",
    "",
    " ",
    "*",
    "http://evil.com",
    "http://evil.com:8000",
    "http://localhost.evil.com",
    "http://127.0.0.1.evil.com:8000",
    "http://evil-localhost",
    "http://evillocalhost:8000",
    "http://localhost.",
    "http://127.0.0.1.",
    "http://localhost@evil.com",
    "http://evil.com@localhost",
    "http://user:secret@localhost",
    "http://localhost:8000@evil.com",
    "http://evil.com#localhost",
    "http://evil.com?localhost",
    "http://evil.com/localhost",
    "http://localhost/",
    "http://localhost/path",
    "http://localhost#x",
    "http://localhost?x",
    "http://localhost:80:80",
    "http://localhost:evil",
    "http://",
    "http:",
    "http:localhost",
    "localhost",
    "//localhost",
    "127.0.0.1:8000",
    "file://",
    "file://localhost",
    "ftp://localhost",
    "ws://localhost",
    "javascript://localhost",
    "chrome-extension://localhost",
    "data:text/html,localhost",
    "http://localhost http://evil.com",
    "http://localhost, http://evil.com",
    "http://evil.com, http://localhost",
    "http://l\xf6calhost",
    "http://10.0.0.1",
    "http://0.0.0.0:8000",
    "http://[::]",
    "http://127.1",
    "http://*",
]
GOOD_ORIGINS = [
    "http://127.0.0.1:8000",
    "http://localhost:8000",
    "http://localhost:3000",
    "https://localhost",
    "HTTP://LOCALHOST:8000",
    "http://[::1]:6274",
]


async def send(
    peer: Peer,
    lines: list[tuple[str, str]],
    *,
    method: str = "POST",
    path: str = "/mcp",
    server: tuple[str, int] | None = LOOPBACK,
) -> Answer:
    """Send a good tools/list with these Host and Origin lines, whatever they are."""
    message = peer.message("tools/list")
    pairs = [*lines, *[(name, value) for name, value in peer.headers(message).items() if name != "host"]]
    under_way = exchange(peer.app, method, pairs, [to_bytes(message)], path=path, server=server)
    return check(await under_way.answer(), peer.revision)


@rules.verifies(rules.THREAT_1, rules.D9)
@pytest.mark.parametrize("host", EVIL_HOSTS)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_foreign_host_is_refused_by_a_server_on_loopback(offering: Offering, revision: str, host: str) -> None:
    """The default settings reject it before the body is read."""
    peer = await connect(offering.app, revision)
    answer = await send(peer, [("host", host)])
    assert answer.status in {403, 421}
    assert answer.reads == 0
    assert "id" not in answer.message
    await peer.works()


@rules.verifies(rules.THREAT_1)
@pytest.mark.parametrize("path", ["/mcp", "/elsewhere"])
async def test_no_host_at_all_is_400(offering: Offering, path: str) -> None:
    assert (await send(await connect(offering.app, HANDSHAKE), [], path=path)).status == 400


@rules.verifies(rules.THREAT_1, rules.D9)
@pytest.mark.parametrize("host", GOOD_HOSTS)
async def test_a_loopback_host_passes(offering: Offering, host: str) -> None:
    """Names and addresses of loopback have any case and any port."""
    assert (await send(await connect(offering.app, HANDSHAKE), [("host", host)])).status == 200


@rules.verifies(rules.THREAT_1, rules.H8, rules.D9)
@pytest.mark.parametrize("origin", EVIL_ORIGINS)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_foreign_origin_is_403(offering: Offering, revision: str, origin: str) -> None:
    """`null` and origins with user info, path or fragment are rejected too, before the body is read."""
    peer = await connect(offering.app, revision)
    answer = await send(peer, [("host", "127.0.0.1:8000"), ("origin", origin)])
    assert (answer.status, answer.reads) == (403, 0)
    assert "id" not in answer.message
    assert answer.header("access-control-allow-origin") is None


@rules.verifies(rules.THREAT_1, rules.D9)
@pytest.mark.parametrize("origin", GOOD_ORIGINS)
async def test_a_loopback_origin_passes(offering: Offering, origin: str) -> None:
    """These are pages on the developer's machine."""
    peer = await connect(offering.app, HANDSHAKE)
    assert (await send(peer, [("host", "localhost:8000"), ("origin", origin)])).status == 200


@rules.verifies(rules.THREAT_1)
@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT", "HEAD", "POST"])
@pytest.mark.parametrize("path", ["/mcp", "/", "/.well-known/oauth-protected-resource", "/else"])
@pytest.mark.parametrize("revision", ERAS)
async def test_the_check_comes_first_on_every_method_and_path(
    offering: Offering, revision: str, path: str, method: str
) -> None:
    """A foreign page can't end a session either."""
    peer = await connect(offering.app, revision)
    host = await send(peer, [("host", "evil.com")], method=method, path=path)
    origin = await send(peer, [("host", "localhost"), ("origin", "http://evil.com")], method=method, path=path)
    assert host.status in {403, 421}
    assert (origin.status, origin.reads) == (403, 0)
    await peer.works()


@rules.verifies(rules.THREAT_1, rules.D11)
@pytest.mark.parametrize(
    "lines",
    [
        [("host", "localhost"), ("host", "localhost")],
        [("host", "localhost"), ("host", "evil.com")],
        [("host", "evil.com"), ("host", "localhost")],
        [("Host", "localhost"), ("HOST", "localhost")],
        [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.com")],
        [("host", "localhost"), ("origin", "http://evil.com"), ("origin", "http://localhost")],
        [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")],
    ],
)
@pytest.mark.parametrize("wide_open", [True, False])
async def test_two_hosts_or_two_origins_are_400(lines: list[tuple[str, str]], wide_open: bool) -> None:
    """They are rejected even if all hosts and origins are allowed."""
    options = HTTPOptions(allowed_hosts=["*"], allowed_origins=["*"]) if wide_open else HTTPOptions()
    answer = await send(await connect(offer(http=options).app, HANDSHAKE), lines)
    assert (answer.status, answer.reads) == (400, 0)


@rules.verifies(rules.THREAT_1)
async def test_forwarded_headers_change_nothing(offering: Offering) -> None:
    """A client can write these headers."""
    peer = await connect(offering.app, HANDSHAKE)
    forwarded = [("x-forwarded-host", "localhost"), ("forwarded", "host=localhost"), ("x-original-host", "localhost")]
    assert (await send(peer, [("host", "evil.com"), *forwarded])).status in {403, 421}
    evil = [("x-forwarded-host", "evil.com"), ("forwarded", "host=evil.com")]
    assert (await send(peer, [("host", "localhost"), ("origin", "http://evil.com"), *evil])).status == 403


@rules.verifies(rules.THREAT_1)
@pytest.mark.parametrize("server", [("192.168.7.5", 8000), ("2001:db8::1", 8000), None])
async def test_elsewhere_than_on_loopback_loopback_names_are_foreign(server: tuple[str, int] | None) -> None:
    """Only the address itself or an allowed host passes, because a name can resolve to any address."""
    peer = Peer(offer().app, PER_REQUEST)
    for host in ("localhost", "127.0.0.1:8000", "evil.com", "192.168.7.6"):
        assert (await send(peer, [("host", host)], server=server)).status in {403, 421}
    if server is not None:
        authority = f"[{server[0]}]:8000" if ":" in server[0] else f"{server[0]}:8000"
        assert (await send(peer, [("host", authority)], server=server)).status == 200
        assert (await send(peer, [("host", authority), ("origin", f"http://{authority}")], server=server)).status == 200
        assert (
            await send(peer, [("host", authority), ("origin", f"http://{authority[:-1]}1")], server=server)
        ).status == 403


@rules.verifies(rules.THREAT_1)
@pytest.mark.parametrize(
    ("host", "passes"),
    [
        ("api.example.com", True),
        ("API.Example.COM", True),
        ("api.example.com:443", True),
        ("with-port.example.com:8443", True),
        ("with-port.example.com", False),
        ("with-port.example.com:443", False),
        ("xapi.example.com", False),
        ("x.api.example.com", False),
        ("api.example.com.evil.com", False),
        ("api.example.com.", False),
        ("example.com", False),
        ("user@api.example.com", False),
        ("api.example.com/", False),
        ("*", False),
        ("localhost", False),
    ],
)
async def test_allowed_hosts_are_matched_whole(host: str, passes: bool) -> None:
    """The name matches with or without a port and in any case, but not as a part of another name."""
    options = HTTPOptions(allowed_hosts=["api.example.com", "With-Port.example.com:8443"])
    answer = await send(Peer(offer(http=options).app, PER_REQUEST), [("host", host)], server=("203.0.113.9", 80))
    assert (answer.status == 200) is passes, answer.status


@rules.verifies(rules.THREAT_1, rules.H8)
@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("https://app.example.com", True),
        ("HTTPS://App.Example.com", True),
        ("http://app.example.com", False),
        ("https://app.example.com:444", False),
        ("https://app.example.com.evil.com", False),
        ("https://xapp.example.com", False),
        ("https://app.example.com/", False),
        ("https://app.example.com@evil.com", False),
        ("https://example.com", False),
        ("null", False),
        ("vscode-webview://panel", True),
        ("vscode-webview://panel2", False),
    ],
)
async def test_allowed_origins_are_matched_whole(origin: str, passes: bool) -> None:
    """The scheme, the host and the port must match."""
    options = HTTPOptions(allowed_origins=["https://app.example.com", "vscode-webview://panel"])
    answer = await send(Peer(offer(http=options).app, PER_REQUEST), [("host", "localhost"), ("origin", origin)])
    assert answer.status == (200 if passes else 403)


@rules.verifies(rules.THREAT_1)
async def test_a_star_allows_every_host_and_every_origin() -> None:
    """An empty list allows nothing."""
    both = Peer(offer(http=HTTPOptions(allowed_hosts=["*"], allowed_origins=["*"])).app, PER_REQUEST)
    hosts = Peer(offer(http=HTTPOptions(allowed_hosts=["*"], allowed_origins=[])).app, PER_REQUEST)
    lines = [("host", "any.example.com"), ("origin", "http://other.example.com")]
    assert (await send(both, lines)).status == 200
    assert (await send(both, [("host", "localhost"), ("origin", "null")])).status == 200
    assert (await send(hosts, lines)).status == 403
    assert (await send(hosts, lines[:1])).status == 200


@rules.verifies(rules.THREAT_1)
async def test_an_origin_can_be_required() -> None:
    """Programs that are not browsers send no Origin."""
    peer = Peer(offer(http=HTTPOptions(require_origin=True)).app, PER_REQUEST)
    assert (await send(peer, [("host", "localhost")])).status == 403
    assert (await send(peer, [("host", "localhost"), ("origin", "http://localhost:8000")])).status == 200


@rules.verifies(rules.THREAT_1)
async def test_what_passed_once_opens_nothing_for_others(offering: Offering) -> None:
    """A cached valid pair of headers does not allow other pairs."""
    peer = await connect(offering.app, HANDSHAKE)
    for lines, status in [
        ([("host", "localhost"), ("origin", "http://localhost")], 200),
        ([("host", "localhost"), ("origin", "http://evil.com")], 403),
        ([("host", "localhost")], 200),
    ] * 3:
        assert (await send(peer, lines)).status == status
    refused = await send(peer, [("host", "localhost")], server=("203.0.113.9", 80))
    assert refused.status in {403, 421}


@rules.verifies(rules.THREAT_1, rules.H8)
async def test_a_foreign_page_cannot_begin_a_session(offering: Offering) -> None:
    """Its `initialize` creates no session."""
    peer = Peer(offering.app)
    for headers in ({"origin": "http://evil.com"}, {"host": "evil.com"}):
        answer = await peer.post(initialize(HANDSHAKE), headers)
        assert answer.status in {403, 421}
        assert answer.header("mcp-session-id") is None
    assert len(offering.sessions) == 0
