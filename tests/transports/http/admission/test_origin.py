"""Host and Origin against DNS rebinding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import HttpRequest
from funcmcp._transports.http.options import HTTPOptions

LOOPBACK = "127.0.0.1"
PUBLIC = "93.184.216.34"
LISTED = "orders.example.com"
NAMES = st.from_regex(r"\A[a-z0-9.-]{1,20}\Z") | st.sampled_from(
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.localhost.example",
        "orders.example.com.evil.example",
        "evilorders.example.com",
        "localhost.",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0.0.0.0",
        "[::ffff:93.184.216.34]",
        "93.184.216.34",
    ]
)
HARMLESS = {"localhost", LISTED}


def is_loopback(name: str) -> bool:
    """Tell by the letter of RFC 5735: 127.0.0.0/8 in dotted form, and ::1."""
    parts = name.split(".")
    dotted = len(parts) == 4 and all(part.isdecimal() and part == str(int(part)) and int(part) < 256 for part in parts)
    return (dotted and parts[0] == "127") or name == "[::1]"


def request(pairs: list[tuple[str, str]], server: str | None) -> HttpRequest:
    lines = [(name.encode(), value.encode("utf-8")) for name, value in pairs]
    return HttpRequest("POST", "/mcp", lines, server)


def refusal(
    host: str | None = "127.0.0.1:8000", origin: str | None = None, server: str | None = LOOPBACK, **options: object
) -> int | None:
    """Return the status of a refusal, or None."""
    pairs = [(name, value) for name, value in (("host", host), ("origin", origin)) if value is not None]
    check = OriginCheck(HTTPOptions(**options))  # type: ignore[arg-type]
    first, second = (check.refusal(request(pairs, server)) for _ in range(2))
    status = None if first is None else first.status
    assert (None if second is None else second.status) == status
    return status


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@settings(deadline=None)
@given(NAMES, st.sampled_from(["", ":80", ":8000"]), st.sampled_from([LOOPBACK, "::1", None]))
def test_no_host_passes_that_is_not_loopback_or_listed(name: str, port: str, server: str | None) -> None:
    if refusal(name + port, server=server, allowed_hosts=[LISTED]) is None:
        assert name in HARMLESS or is_loopback(name)


@settings(deadline=None)
@given(NAMES, st.sampled_from(["", ":80", ":8000"]), st.sampled_from(["http", "https", "HTTP", "chrome-extension"]))
def test_no_origin_passes_that_is_not_own_loopback_or_listed(name: str, port: str, scheme: str) -> None:
    origin = f"{scheme}://{name}{port}"
    if refusal(LISTED, origin, PUBLIC, allowed_hosts=[LISTED], allowed_origins=["https://app.example.com"]) is None:
        assert name in HARMLESS or is_loopback(name)


@settings(deadline=None)
@given(st.text(max_size=30))
def test_no_text_at_all_passes_as_a_foreign_host(text: str) -> None:
    name = text.strip(" \t").lower().rpartition(":")[0] or text.strip(" \t").lower()
    if refusal(text) is None:
        assert name in HARMLESS or is_loopback(name)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", " localhost "]
)
@pytest.mark.parametrize("server", [LOOPBACK, "::1", "localhost"])
def test_a_loopback_server_answers_to_loopback_names(host: str, server: str) -> None:
    assert refusal(host, server=server) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", PUBLIC, "", "local host", "localhost:http", "a@b"]
)
def test_a_loopback_server_answers_to_no_other_name(host: str) -> None:
    assert refusal(host) == 421


def test_the_first_refused_host_is_logged_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    check = OriginCheck(HTTPOptions())
    for host in ("x-uc.a.run.app\x1b[2J", "evil.example"):
        refused = check.refusal(request([("host", host)], "127.0.0.1"))
        assert refused is not None
        assert refused.status == 421
    (record,) = caplog.records
    assert r"because its Host 'x-uc.a.run.app\x1b[2J' is not allowed" in record.getMessage()
    assert "let that pass on the Host of the client. See docs/deploy/proxies.md." in record.getMessage()


def test_the_logged_text_of_a_refused_host_is_short(caplog: pytest.LogCaptureFixture) -> None:
    assert OriginCheck(HTTPOptions()).refusal(request([("host", "a" * 5000)], "127.0.0.1")) is not None
    assert f"'{'a' * 100}'" in caplog.text


@pytest.mark.parametrize("allowed", [(), ("*",)])
def test_a_request_without_a_host_is_400_even_where_every_host_is_allowed(allowed: tuple[str, ...]) -> None:
    assert refusal(None, allowed_hosts=allowed) == 400


class OlderRequest(HttpRequest):
    """A request in HTTP/1.0."""

    version = "1.0"


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        ([], None),
        ([(b"origin", b"https://evil.example")], 403),
        ([(b"origin", b"null")], 403),
        ([(b"host", b"evil.example")], 421),
        ([(b"host", b"")], 421),
        ([(b"host", b"127.0.0.1"), (b"host", b"127.0.0.1")], 400),
    ],
)
def test_a_request_in_http_1_0_may_have_no_host(pairs: list[tuple[bytes, bytes]], status: int | None) -> None:
    """RFC 9112 section 3.2 demands it in HTTP/1.1 only, and HAProxy's health checks have none by default."""
    refused = OriginCheck(HTTPOptions()).refusal(OlderRequest("GET", "/health", pairs, LOOPBACK))
    assert (None if refused is None else refused.status) == status


@pytest.mark.parametrize(("method", "status"), [("GET", None), ("HEAD", None), ("POST", 400), ("DELETE", 400)])
def test_only_a_health_check_may_have_no_host(method: str, status: int | None) -> None:
    refused = OriginCheck(HTTPOptions()).refusal(OlderRequest(method, "/health", [], LOOPBACK))
    assert (None if refused is None else refused.status) == status


def test_a_server_on_an_address_answers_to_that_address_only() -> None:
    assert refusal(f"{PUBLIC}:8000", server=PUBLIC) is None
    assert refusal("93.184.216.35", server=PUBLIC) == 421
    assert refusal("localhost", server=PUBLIC) == 421
    assert refusal("orders.example.com", server=PUBLIC) == 421


def test_a_server_that_does_not_know_its_address_answers_to_listed_names_only() -> None:
    assert refusal("localhost", server=None) == 421
    assert refusal("localhost", server="shop.example.com") == 421
    assert refusal("evil.example", server="localhost") == 421
    assert refusal(LISTED, server=None, allowed_hosts=[LISTED]) is None


def test_a_server_on_a_unix_socket_answers_to_loopback_names_and_listed_names() -> None:
    assert refusal("localhost", server="/run/orders.sock") is None
    assert refusal("orders.example.com", server="/run/orders.sock") == 421
    assert refusal(LISTED, server="/run/orders.sock", allowed_hosts=[LISTED]) is None


@pytest.mark.parametrize(
    ("listed", "host", "passes"),
    [
        ("orders.example.com", "orders.example.com", True),
        ("orders.example.com", "ORDERS.example.com:443", True),
        ("Orders.Example.Com", "orders.example.com", True),
        ("orders.example.com:8443", "orders.example.com:8443", True),
        ("orders.example.com:8443", "orders.example.com", False),
        ("orders.example.com:8443", "orders.example.com:80", False),
        ("orders.example.com", "sub.orders.example.com", False),
        ("*", "anything.example", True),
    ],
)
def test_a_listed_host_passes_exactly(listed: str, host: str, passes: bool) -> None:
    assert (refusal(host, server=PUBLIC, allowed_hosts=[listed]) is None) is passes


def test_every_host_passes_only_where_that_was_asked_for() -> None:
    assert refusal("evil.example", allowed_hosts=[]) == 421
    assert refusal("evil.example", allowed_hosts=["*"]) is None


def test_a_program_sends_no_origin_and_passes() -> None:
    assert refusal(origin=None) is None


def test_an_origin_can_be_required() -> None:
    assert refusal(origin=None, require_origin=True) == 403
    assert refusal(origin="http://localhost:3000", require_origin=True) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "http://localhost:6274",
        "https://127.0.0.1:1",
        "http://[::1]:3000",
        "HTTP://LocalHost",
        " http://localhost ",
    ],
)
def test_a_loopback_origin_passes(origin: str) -> None:
    assert refusal(origin=origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example/http://localhost",
        "http://localhost/path",
        "http://localhost:",
        "localhost",
        "//localhost",
        "file://",
        "file://localhost",
        "https://evil.example\thttp://localhost",
    ],
)
def test_any_other_origin_is_forbidden(origin: str) -> None:
    assert refusal(origin=origin) == 403


@pytest.mark.parametrize(
    ("host", "origin", "passes"),
    [
        ("orders.example.com", "https://orders.example.com", True),
        ("orders.example.com:443", "https://orders.example.com", True),
        ("orders.example.com", "https://orders.example.com:443", True),
        ("orders.example.com:8443", "https://orders.example.com:8443", True),
        ("ORDERS.example.com", "https://orders.EXAMPLE.com", True),
        ("orders.example.com", "https://orders.example.com:8443", False),
        ("orders.example.com", "https://other.example.com", False),
        ("orders.example.com", "ftp://orders.example.com", False),
    ],
)
def test_the_servers_own_origin_passes(host: str, origin: str, passes: bool) -> None:
    assert (refusal(host, origin, PUBLIC, allowed_hosts=[host.lower()]) is None) is passes


@pytest.mark.parametrize(
    ("listed", "origin", "passes"),
    [
        ("https://app.example.com", "https://app.example.com", True),
        ("https://App.Example.Com/", "https://app.example.com", True),
        ("https://app.example.com", "http://app.example.com", False),
        ("https://app.example.com", "https://app.example.com:8443", False),
        ("vscode-webview://abc", "vscode-webview://abc", True),
        ("null", "null", True),
        ("*", "https://evil.example", True),
    ],
)
def test_a_listed_origin_passes_exactly(listed: str, origin: str, passes: bool) -> None:
    assert (refusal(origin=origin, allowed_origins=[listed]) is None) is passes


def test_a_host_that_is_no_authority_is_nobodys_origin() -> None:
    assert refusal("not a host", "https://orders.example.com", allowed_hosts=["*"]) == 403


@pytest.mark.parametrize("name", ["host", "origin"])
def test_a_header_that_comes_twice_is_a_bad_request(name: str) -> None:
    good = {"host": "127.0.0.1", "origin": "http://localhost"}
    pairs = [*good.items(), (name, good[name])]
    refused = OriginCheck(HTTPOptions()).refusal(request(pairs, LOOPBACK))
    assert refused is not None
    assert refused.status == 400


def test_what_passed_for_one_address_does_not_pass_for_another() -> None:
    check = OriginCheck(HTTPOptions())
    assert check.refusal(request([("host", "localhost")], LOOPBACK)) is None
    assert check.refusal(request([("host", "localhost")], PUBLIC)) is not None


def test_hosts_of_the_environment_are_allowed_beside_those_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCMCP_ALLOWED_HOSTS", "shop.example.com, Orders.example.com:8443,")
    check = OriginCheck(HTTPOptions(allowed_hosts=[LISTED]))

    def allowed(host: str) -> bool:
        return check.refusal(HttpRequest("POST", "/mcp", [(b"host", host.encode())], LOOPBACK)) is None

    assert [allowed(host) for host in (LISTED, "shop.example.com:1", "orders.example.com:8443")] == [True] * 3
    assert not allowed("other.example.com")


def test_an_ipv4_connection_to_an_ipv6_socket_is_one_to_its_ipv4_address() -> None:
    request = HttpRequest("POST", "/mcp", [(b"host", b"127.0.0.1:8000")], "::ffff:127.0.0.1")
    assert OriginCheck(HTTPOptions()).refusal(request) is None
