"""Resources: reading them, what they hold, and what may not be read."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.features import SECRET
from tests.wire.peer import ALL, ERAS, HANDSHAKES, PER_REQUEST, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer, Peer

NOT_FOUND = {revision: (400, -32602) if revision == PER_REQUEST else (200, -32002) for revision in ALL}
INVALID = {revision: (400, -32602) if revision == PER_REQUEST else (200, -32602) for revision in ALL}


async def read(peer: Peer, uri: object) -> Answer:
    return await peer.request("resources/read", {"uri": uri})


@rules.verifies(rules.R1)
@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("menu://today", [{"mimeType": "text/plain", "text": "Fish"}]),
        ("menu://empty", [{"mimeType": "text/plain", "text": ""}]),
        ("menu://list", [{"mimeType": "application/json", "text": '[{"dish":"Fish","price":7.5}]'}]),
        (
            "menu://week",
            [
                {"uri": "menu://week/1", "mimeType": "text/plain", "text": "Fish"},
                {"mimeType": "application/octet-stream", "blob": "AA==", "_meta": {"a": 1}},
            ],
        ),
        ("news://monday", [{"mimeType": "text/plain", "text": "News of monday"}]),
        (
            "menu://dishes/7?half=2&colour=blue",
            [{"mimeType": "application/json", "text": '{"number":7,"colour":"blue","half":2}'}],
        ),
        ("file://docs/a%20b/c", [{"mimeType": "text/plain", "text": "a b/c"}]),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_resource_is_read_by_its_uri(
    stocked: Offering, revision: str, uri: str, contents: list[dict[str, Any]]
) -> None:
    answer = await read(await connect(stocked.app, revision), uri)
    assert answer.status == 200
    assert answer.result["contents"] == [{"uri": uri, **content} for content in contents]


@rules.verifies(rules.R3)
@pytest.mark.parametrize("revision", ALL)
async def test_bytes_are_base64(stocked: Offering, revision: str) -> None:
    (contents,) = (await read(await connect(stocked.app, revision), "menu://logo")).result["contents"]
    assert base64.b64decode(contents["blob"], validate=True) == b"\x89PNG\r\n\x00\xff"
    assert (contents["mimeType"], "text" in contents) == ("image/png", False)


@rules.verifies(rules.R2, rules.TRAP_2)
@pytest.mark.parametrize(
    "uri",
    [
        "menu://unheard_of",
        "menu://gone",
        "news://sunday",
        "menu://today/",
        "menu://today?",
        " menu://today",
        "menu://today\n",
        "",
        "today",
        "ftp://example.com/",
        "file:///etc/passwd",
        "file://docs/",
        "file://docs/%ff",
        "file://docs/%",
        "news://é\u2028\x00",
        "x" * 15_000,
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_not_there_is_not_found(stocked: Offering, revision: str, uri: str) -> None:
    peer = await connect(stocked.app, revision)
    answer = await read(peer, uri)
    if "\x00" in uri:
        assert answer.outcome == INVALID[revision]
    else:
        assert answer.outcome == NOT_FOUND[revision]
        assert answer.error["message"] == "Resource not found"
    assert answer.error["data"] == {"uri": uri}
    await peer.works()


@rules.verifies(rules.R3, rules.THREAT_29)
@pytest.mark.parametrize(
    "uri",
    [
        "file://docs/..",
        "file://docs/../secret",
        "file://docs/a/../../secret",
        "file://docs/%2e%2e/secret",
        "file://docs/.%2E%2Fsecret",
        "file://docs/..%2f..%2fetc%2fpasswd",
        "file://docs//etc/passwd",
        "file://docs/%2Fetc%2Fpasswd",
        "file://docs/C:/secret",
        "file://docs/a%5C..%5Csecret",
        "file://docs/a\\secret",
        "file://docs/a%00.txt",
        "news://..",
        "news://%2e%2e%2fx",
        "menu://dishes/1?colour=..%2Fx",
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_path_that_leads_outside_is_refused(stocked: Offering, revision: str, uri: str) -> None:
    """Values with `..`, absolute paths, drives, backslashes and NUL are rejected, percent-encoded or not."""
    peer = await connect(stocked.app, revision)
    assert (await read(peer, uri)).outcome == INVALID[revision]
    await peer.works()


@rules.verifies(rules.THREAT_29)
@pytest.mark.parametrize("uri", ["file://docs/%252e%252e/x", "file://docs/...", "file://docs/a..b/c"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_value_is_decoded_once_and_dots_alone_are_harmless(stocked: Offering, revision: str, uri: str) -> None:
    """A value is never decoded twice, and harmless names with dots are accepted."""
    (contents,) = (await read(await connect(stocked.app, revision), uri)).result["contents"]
    assert contents["text"] == uri.removeprefix("file://docs/").replace("%25", "%")


@rules.verifies(rules.R3)
@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("menu://dishes/seven", ["number"]),
        ("menu://dishes/0", ["number"]),
        ("menu://dishes/7.5", ["number"]),
        ("menu://dishes/1?colour=green", ["colour"]),
        ("menu://dishes/x?colour=green&half=3", ["number", "colour", "half"]),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_value_of_the_wrong_type_is_invalid(
    stocked: Offering, revision: str, uri: str, named: list[str]
) -> None:
    """The function is not called. The error lists all invalid values."""
    answer = await read(await connect(stocked.app, revision), uri)
    assert answer.outcome == INVALID[revision]
    assert [name for name in ("number", "colour", "half") if f"{name}:" in answer.error["message"]] == named


@rules.verifies(rules.R3, rules.H16)
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "resources/unsubscribe"])
@pytest.mark.parametrize("revision", ALL)
async def test_a_uri_that_is_no_text_is_invalid(stocked: Offering, revision: str, method: str) -> None:
    """The error is -32602, or -32601 for a method that the revision does not have."""
    peer = await connect(stocked.app, revision)
    uris: tuple[object, ...] = (None, 5, 1.5, True, [], ["menu://today"], {}, {"uri": "menu://today"})
    outcomes = {repr(uri): (await peer.request(method, {"uri": uri})).outcome for uri in uris}
    gone = revision == PER_REQUEST and method != "resources/read"
    assert outcomes == dict.fromkeys(outcomes, (404, -32601) if gone else INVALID[revision])
    await peer.works()


@rules.verifies(rules.R3)
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe"])
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_uri_that_is_missing_is_invalid(stocked: Offering, revision: str, method: str) -> None:
    peer = await connect(stocked.app, revision)
    assert (await peer.request(method)).outcome == (200, -32602)


@rules.verifies(rules.THREAT_28, rules.R3)
@pytest.mark.parametrize("unit", ["/", "a/", "%2F", "../", "..%2F", "?", "&q=", "{", "{path*}", "é", "%C3%A9"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_hostile_uri_is_answered_like_any_other(stocked: Offering, revision: str, unit: str) -> None:
    """Matching takes linear time for any repeated text."""
    peer = await connect(stocked.app, revision)
    for begin in ("file://docs/", "menu://dishes/", "news://"):
        answer = await read(peer, begin + unit * (8000 // len(unit)))
        assert answer.outcome in {NOT_FOUND[revision], INVALID[revision], (200, None)}
    await peer.works()


@rules.verifies(rules.H16, rules.THREAT_39)
@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("menu://broken", "error id"),
        ("menu://unsayable", "rror"),
        ("menu://closed", "The kitchen is closed."),
        ("menu://slow", "0.2 seconds"),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_a_resource_that_fails_is_an_error_that_leaks_nothing(
    stocked: Offering, revision: str, uri: str, message: str
) -> None:
    """The error is -32603, and the next request is answered."""
    peer = await connect(stocked.app, revision)
    answer = await read(peer, uri)
    assert answer.outcome == (200, -32603)
    assert message in answer.error["message"]
    assert SECRET.encode() not in answer.body
    await peer.works()


@rules.verifies(rules.R1)
@pytest.mark.parametrize("revision", ALL)
async def test_resources_are_described_as_their_revision_has_it(stocked: Offering, revision: str) -> None:
    """The lists have the static resources, those of listing functions, and the templates."""
    peer = await connect(stocked.app, revision)
    listed = (await peer.request("resources/list")).result["resources"]
    by_uri = {template["uri"]: template for template in listed}
    assert len(by_uri) == len(listed)
    assert {"menu://today", "ui://board", "news://monday", "news://wednesday"} <= by_uri.keys()
    today = by_uri["menu://today"]
    assert (today["name"], today["size"], today["mimeType"]) == ("today", 4, "text/plain")
    assert ("title" in today, "_meta" in today) == (revision >= "2025-06-18",) * 2
    assert ("icons" in today, "icons" in by_uri["news://monday"]) == (revision >= "2025-11-25",) * 2
    templates = (await peer.request("resources/templates/list")).result["resourceTemplates"]
    assert [template["uriTemplate"] for template in templates][:3] == [
        "news://{day}",
        "menu://dishes/{number}{?colour,half}",
        "file://docs/{path*}",
    ]


@rules.verifies(rules.R1, rules.R2)
@pytest.mark.parametrize("revision", ALL)
async def test_every_resource_that_is_listed_can_be_read(stocked: Offering, revision: str) -> None:
    """A resource that can't be read is an error, never empty contents."""
    peer = await connect(stocked.app, revision, {"elicitation": {}})
    wrong = {"menu://gone", "menu://broken", "menu://closed", "menu://unsayable", "menu://slow", "menu://ask"}
    for resource in (await peer.request("resources/list")).result["resources"]:
        if resource["uri"] not in wrong:
            assert (await read(peer, resource["uri"])).result["contents"]


@rules.verifies(rules.APPS)
@pytest.mark.parametrize("revision", ALL)
async def test_a_page_has_the_media_type_and_the_policy_of_mcp_apps(stocked: Offering, revision: str) -> None:
    """The contents have `_meta.ui`, the tool has the URI of the page, and the server declares the extension."""
    peer = await connect(stocked.app, revision)
    (page,) = (await read(peer, "ui://board")).result["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"
    assert page["_meta"] == {"ui": {"csp": {"connectDomains": ["https://example.com"]}}}
    tools = (await peer.request("tools/list")).result["tools"]
    (show,) = [tool for tool in tools if tool["name"] == "show_board"]
    if revision >= "2025-06-18":
        assert show["_meta"] == {"ui": {"resourceUri": "ui://board"}, "ui/resourceUri": "ui://board"}
    if peer.per_request:
        declared = (await peer.request("server/discover")).result["capabilities"]
        assert declared["extensions"] == {"io.modelcontextprotocol/ui": {}}
