"""The reference server with everything, through the proxy: official clients use all of it, in both eras.

The server speaks 2025-11-25 only, and offers tools that depend on the capabilities of its client.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.plan import Call, Step, Target, hear, tool
from tests.clients.players import PER_REQUEST, PLAYERS, Player
from tests.proxy.published import node_server
from tests.proxy.serving import proxy, started
from tests.proxy.wire import ERAS, HANDSHAKE, over_http, over_stdio, plain
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.serving import Served

pytestmark = pytest.mark.slow("A published server on Node is started, and official clients use it through a proxy.")

TRANSPORTS = ("http", "stdio")
WAYS = [
    *(("http", player) for player in PLAYERS),
    *(("stdio", player) for player in PLAYERS if player.name in ("python-handshake", "typescript-v2-auto")),
]
"""How the server is reached, and by which client: by all of them over HTTP, and by one of each era on stdio."""

HANDSHAKE_WAYS = [way for way in WAYS if way[1].revision != PER_REQUEST]
WITHOUT_CAPABILITIES = 13
CAPABILITIES: list[dict[str, Any]] = [
    {},
    {"roots": {}},
    {"sampling": {}},
    {"elicitation": {}},
    {"elicitation": {"form": {}, "url": {}}},
    {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
    {
        "roots": {},
        "sampling": {},
        "elicitation": {},
        "tasks": {"requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}},
    },
]
NAMED = [next(iter(value), "none") + str(number) for number, value in enumerate(CAPABILITIES)]


@contextmanager
def upstream(transport: str) -> Iterator[dict[str, Any]]:
    """Yield a row of PROXY for the server over a transport."""
    if transport == "stdio":
        yield {"command": node_server("server-everything"), "prefix": "all"}
        return
    port = free_port()
    with started(node_server("server-everything", "streamableHttp"), "listening on port", {"PORT": str(port)}):
        yield {"url": f"http://127.0.0.1:{port}/mcp", "prefix": "all"}


@pytest.fixture(scope="module")
def proxies() -> Iterator[dict[str, Served]]:
    """The proxies of the server by the transport of the server, which the tests start when they need them."""
    with ExitStack() as stack:
        yield _Proxies(stack)


class _Proxies(dict[str, "Served"]):
    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, transport: str) -> Served:
        row = self._stack.enter_context(upstream(transport))
        self[transport] = self._stack.enter_context(proxy(row))
        return self[transport]


async def tools_directly(capabilities: dict[str, Any]) -> set[str]:
    async with over_stdio(node_server("server-everything"), HANDSHAKE, capabilities=capabilities) as wire:
        result = plain(await wire.ask("tools/list", {}))["result"]
    return {tool["name"] for tool in result["tools"]}


@pytest.mark.parametrize("capabilities", CAPABILITIES, ids=NAMED)
async def test_the_tools_are_those_for_the_capabilities_of_the_client(
    capabilities: dict[str, Any], proxies: dict[str, Served]
) -> None:
    passed = {
        name: value for name, value in capabilities.items() if name != "tasks"
    }  # of the client, which do not pass
    direct = await tools_directly(passed)
    for transport, era in itertools.product(TRANSPORTS, ERAS):
        async with over_http(proxies[transport].url, era, capabilities) as wire:
            result = plain(await wire.ask("tools/list", {}))["result"]
        assert {tool["name"] for tool in result["tools"]} == {f"all_{name}" for name in direct}, (transport, era)
    assert len(direct) >= WITHOUT_CAPABILITIES
    assert (len(direct) == WITHOUT_CAPABILITIES) == (capabilities == {})


def read(uri: str) -> Step:
    return Step("resources/read", {"uri": uri})


def prompt(name: str, **arguments: str) -> Step:
    return Step("prompts/get", {"name": name, "arguments": arguments})


def complete(ref: dict[str, str], name: str, value: str, **arguments: str) -> Step:
    context = {"context": {"arguments": arguments}} if arguments else {}
    return Step("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **context})


ROOTS = {"roots": [{"uri": "file:///srv/ada", "name": "home"}]}
SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
DOCUMENT = "demo://all/resource/static/document/features.md"
TEXT = "demo://all/resource/dynamic/text"
BLOB = "demo://all/resource/dynamic/blob"
TEMPLATE = {"type": "ref/resource", "uri": f"{TEXT}/{{resourceId}}"}
TEAM = {"type": "ref/prompt", "name": "all_completable-prompt"}

PLAN = {
    "echo": tool("all_echo", {"message": "Åland 🌊"}),
    "structured": tool("all_get-structured-content", {"location": "Chicago"}),
    "image": tool("all_get-tiny-image"),
    "annotated": tool("all_get-annotated-message", {"messageType": "error", "includeImage": True}),
    "links": tool("all_get-resource-links", {"count": 2}),
    "embedded": tool("all_get-resource-reference", {"resourceType": "Blob", "resourceId": 7}),
    "progress": tool("all_trigger-long-running-operation", {"duration": 0.2, "steps": 4}),
    "roots": tool("all_get-roots-list"),
    "sampled": Step(
        "tools/call",
        {"name": "all_trigger-sampling-request", "arguments": {"prompt": "Where?"}},
        {"sampling/createMessage": SAMPLED},
    ),
    "form": tool("all_trigger-elicitation-request", {}, {"action": "accept", "content": {"name": "Ada", "integer": 7}}),
    "declined": tool("all_trigger-elicitation-request", {}, {"action": "decline"}),
    "invalid": tool("all_get-sum", {"a": "one"}),
    "zipped": tool("all_gzip-file-as-resource", {"name": "ada.gz", "data": "data:text/plain,countess"}),
    "unzipped": read("demo://all/resource/session/ada.gz"),
    "resources": Step("resources/list"),
    "templates": Step("resources/templates/list"),
    "document": read(DOCUMENT),
    "text": read(f"{TEXT}/3"),
    "blob": read(f"{BLOB}/4"),
    "nowhere": read(f"{TEXT}/none"),
    "prompts": Step("prompts/list"),
    "arguments": prompt("all_args-prompt", city="Paris", state="Texas"),
    "missing": prompt("all_args-prompt"),
    "embedding": prompt("all_resource-prompt", resourceType="Text", resourceId="2"),
    "complete id": complete(TEMPLATE, "resourceId", "12"),
    "complete name": complete(TEAM, "name", "", department="Sales"),
}

CHANGES = [
    Step("watch", {"resourceSubscriptions": [DOCUMENT]}),
    hear(("resources/updated", {"uri": DOCUMENT}), again=["all_toggle-subscriber-updates"]),
    Step("resources/unsubscribe", {"uri": DOCUMENT}),
]
"""The tool sends updates when it is called for the first, the third and the fifth time in a session. Clients of
2026-07-28 share one, as they have the same address, so the first call of a client may end the updates of another one.
"""

LOGGING = [
    Step("logging/setLevel", {"level": "debug"}),
    hear(("message", {}), again=["all_toggle-simulated-logging"]),
]


@dataclass(frozen=True)
class Session:
    """What one client did.

    Attributes:
        player: The client.
        tools: The tools that it listed, by name.
        calls: What came of each step.
    """

    player: Player
    tools: dict[str, dict[str, Any]]
    calls: dict[str, Call]

    def result(self, name: str) -> Any:
        """Return the result of a step."""
        call = self.calls[name]
        assert call.result is not None, call.error
        return call.result

    def question(self, name: str) -> dict[str, Any]:
        """Return the only question of a step, beside those for roots, which have no params."""
        (params,) = filter(None, self.calls[name].questions)
        return params

    def text(self, name: str) -> str:
        """Return the first text of a tool's result."""
        text: str = next(block["text"] for block in self.result(name)["content"] if block["type"] == "text")
        return text


def way_id(way: tuple[str, Player]) -> str:
    return f"{way[0]}-{way[1].name}"


@pytest.fixture(scope="module", params=WAYS, ids=way_id)
def session(request: pytest.FixtureRequest, proxies: dict[str, Served]) -> Session:
    """What each client did. The server asks for roots at any time, so every step answers that question."""
    transport, player = request.param
    steps = [replace(step, answers={"roots/list": ROOTS, **step.answers}) for step in PLAN.values()]
    played = player.play(Target("http", proxies[transport].url), steps)
    assert played.revision == player.revision
    return Session(player, played.tools, dict(zip(PLAN, played.calls, strict=True)))


def test_a_text_arrives_with_all_of_its_letters(session: Session) -> None:
    assert session.text("echo") == "Echo: Åland 🌊"


def test_structured_content_arrives(session: Session) -> None:
    weather = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert session.result("structured")["structuredContent"] == weather


def test_images_and_annotations_arrive(session: Session) -> None:
    assert [block["type"] for block in session.result("image")["content"]] == ["text", "image", "text"]
    text, image = session.result("annotated")["content"]
    assert text["annotations"] == {"priority": 1, "audience": ["user", "assistant"]}
    assert image["annotations"] == {"priority": 0.5, "audience": ["user"]}


def test_links_lead_to_resources_of_the_proxy(session: Session) -> None:
    links = [block["uri"] for block in session.result("links")["content"] if block["type"] == "resource_link"]
    assert links == [f"{BLOB}/1", f"{TEXT}/2"]
    _, embedded, _ = session.result("embedded")["content"]
    assert embedded["resource"]["uri"] == f"{BLOB}/7"


def test_progress_arrives_in_its_order_before_the_result(session: Session) -> None:
    progress = [(report["progress"], report["total"]) for report in session.calls["progress"].progress]
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_the_server_learns_the_roots_of_the_client(session: Session) -> None:
    assert "file:///srv/ada" in session.text("roots")


def test_the_model_of_the_client_answers_the_server(session: Session) -> None:
    question = session.question("sampled")
    assert question["systemPrompt"] == "You are a helpful test server."
    assert question["messages"][0]["content"]["text"] == "Resource trigger-sampling-request context: Where?"
    answer = json.loads(session.text("sampled").partition("\n")[2])
    assert answer["content"]["text"] == "Paris"


def test_the_user_of_the_client_answers_the_server(session: Session) -> None:
    question = session.question("form")
    assert len(question["requestedSchema"]["properties"]) == 13
    texts = [block["text"] for block in session.result("form")["content"]]
    assert texts[1] == "User inputs:\n- Name: Ada\n- Favorite Integer: 7"
    assert "declined" in session.text("declined")


def test_an_invalid_argument_is_refused_by_the_server_itself(session: Session) -> None:
    result = session.result("invalid")
    assert result["isError"] is True
    assert "expected number" in session.text("invalid")


def test_a_resource_that_a_call_creates_can_be_read(session: Session) -> None:
    (link,) = session.result("zipped")["content"]
    assert (link["type"], link["uri"]) == ("resource_link", "demo://all/resource/session/ada.gz")
    (contents,) = session.result("unzipped")["contents"]
    assert contents["uri"] == link["uri"]
    assert gzip.decompress(base64.b64decode(contents["blob"])) == b"countess"


def test_resources_and_templates_are_those_of_the_server(session: Session) -> None:
    resources = {resource["uri"]: resource for resource in session.result("resources")["resources"]}
    assert resources[DOCUMENT]["mimeType"] == "text/markdown"
    templates = [template["uriTemplate"] for template in session.result("templates")["resourceTemplates"]]
    assert sorted(templates) == [f"{BLOB}/{{resourceId}}", f"{TEXT}/{{resourceId}}"]


def test_resources_are_read_under_the_uris_of_the_proxy(session: Session) -> None:
    (document,) = session.result("document")["contents"]
    assert document["uri"] == DOCUMENT
    assert document["text"].startswith("#")
    (text,) = session.result("text")["contents"]
    assert text["uri"] == f"{TEXT}/3"
    assert text["text"].startswith("Resource 3:")
    (blob,) = session.result("blob")["contents"]
    assert base64.b64decode(blob["blob"]).startswith(b"Resource 4:")
    assert session.calls["nowhere"].error is not None


def test_prompts_are_those_of_the_server(session: Session) -> None:
    names = {prompt["name"] for prompt in session.result("prompts")["prompts"]}
    assert names == {f"all_{name}-prompt" for name in ("simple", "args", "completable", "resource")}
    (message,) = session.result("arguments")["messages"]
    assert message["content"]["text"] == "What's weather in Paris, Texas?"
    error = session.calls["missing"].error
    assert error is not None
    assert error["code"] == -32602
    assert session.result("embedding")["messages"][1]["content"]["resource"]["uri"] == f"{TEXT}/2"


def test_arguments_are_completed_by_the_server(session: Session) -> None:
    assert session.result("complete id")["completion"]["values"] == ["12"]
    assert session.result("complete name")["completion"]["values"] == ["David", "Eve", "Frank"]


@pytest.mark.parametrize("way", HANDSHAKE_WAYS, ids=way_id)
def test_log_messages_of_the_session_arrive(way: tuple[str, Player], proxies: dict[str, Served]) -> None:
    transport, player = way
    *_, heard = player.play(Target("http", proxies[transport].url), LOGGING).calls
    assert heard.result is not None, heard.error
    texts = [str(message["params"].get("data")) for message in heard.result["heard"]]
    assert any("level message" in text.replace("-", " ") for text in texts)  # that of the level alert is misspelled


@pytest.mark.parametrize("way", WAYS, ids=way_id)
def test_updates_of_a_resource_arrive_under_the_uri_of_the_proxy(
    way: tuple[str, Player], proxies: dict[str, Served]
) -> None:
    transport, player = way
    heard = player.play(Target("http", proxies[transport].url), CHANGES).calls[1]
    assert heard.result is not None, heard.error
    assert DOCUMENT in [(message.get("params") or {}).get("uri") for message in heard.result["heard"]]
