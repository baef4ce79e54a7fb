"""What the client says in each transcript."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.wire.peer import ALL, BATCHES, HANDSHAKES, META, PER_REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.transcripts.record import Script

ADA = {"action": "accept", "content": {"name": "Ada"}}
SAMPLED = {"role": "assistant", "model": "small", "content": {"type": "text", "text": "Fish"}}
ROOTS = {"roots": [{"uri": "file:///kitchen", "name": "kitchen"}]}
ELICITS: dict[str, Any] = {"elicitation": {}}
SAMPLES: dict[str, Any] = {"sampling": {}, "roots": {}}
LATER = (PER_REQUEST,)


@dataclass(frozen=True)
class Scenario:
    """One transcript for each of some revisions."""

    name: str
    play: Callable[[Script], None]
    revisions: tuple[str, ...] = ALL
    capabilities: Mapping[str, Any] = field(default_factory=dict)


def simple(title: str, method: str, *several: Mapping[str, Any]) -> Callable[[Script], None]:
    """Return a scenario of requests of one method, each with its own parameters."""

    def play(script: Script) -> None:
        script.connect()
        for params in several or ({},):
            script.request(method, params)

    play.__doc__ = title
    return play


def begin_and_end(script: Script) -> None:
    """A session begins, and ends."""
    script.initialize()
    script.about("The client ends the session; then there is none.")
    script.delete()
    script.request("ping")
    script.about("A request without a session.")
    script.request("ping", headers={"mcp-session-id": None})


def negotiate(script: Script) -> None:
    """A client asks for a revision that the server does not have, and is offered the newest that it could have."""
    message = {
        "protocolVersion": "1999-01-01",
        "capabilities": {},
        "clientInfo": {"name": "transcripts", "version": "1"},
    }
    script.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": message})


def set_level(script: Script) -> None:
    """Log messages: from info on, until the client wants to hear of all."""
    script.connect()
    script.request("tools/call", {"name": "cook", "arguments": {"dish": "soup"}})
    script.request("logging/setLevel", {"level": "debug"})
    script.request("tools/call", {"name": "cook", "arguments": {"dish": "soup"}})
    script.about("There is no such level.")
    script.request("logging/setLevel", {"level": "loud"}, valid=False)


def log_level(script: Script) -> None:
    """Log messages: none, unless the request names a level."""
    script.request("tools/call", {"name": "cook", "arguments": {"dish": "soup"}})
    params = {"name": "cook", "arguments": {"dish": "soup"}, "_meta": {META + "logLevel": "debug"}}
    script.request("tools/call", params)


def pages(method: str, title: str, after: str) -> Callable[[Script], None]:
    """Return a scenario of a list in two pages."""

    def play(script: Script) -> None:
        script.connect()
        script.request(method)
        script.request(method, {"cursor": after})

    play.__doc__ = title
    return play


def call(script: Script) -> None:
    """A tool is called: with progress and log messages, with structured content, wrongly, and one that fails."""
    script.connect()
    script.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    params = {"name": "cook", "arguments": {"dish": "soup"}, "_meta": {"progressToken": "p1"}}
    script.request("tools/call", params)
    script.about("The client takes no event stream.")
    script.request("tools/call", params, headers={"accept": "application/json"})
    script.about("What goes wrong in the tool is a result; what is wrong with the request is an error.")
    script.request("tools/call", {"name": "add", "arguments": {"a": "one"}})
    script.request("tools/call", {"name": "fail"})
    script.request("tools/call", {"name": "unheard_of"})


def cancel(script: Script) -> None:
    """A request is cancelled: it stops, and is not answered."""
    script.connect()
    params = {"name": "wait", "_meta": {"progressToken": 7}}
    number = script.request("tools/call", params, id="slow", hear=("message",))
    if script.era == "handshake":
        script.notify("notifications/cancelled", {"requestId": "slow", "reason": "no appetite"})
        script.hear(number, "end")
    else:
        script.leave(number)


def subscribe(script: Script) -> None:
    """A client subscribes to a resource, and hears of its changes on the session's own stream."""
    script.connect()
    number = script.open_own_stream()
    script.request("resources/subscribe", {"uri": "menu://today"})
    script.act("update menu://logo")
    script.act("update menu://today")
    script.hear(number, "message")
    script.request("resources/unsubscribe", {"uri": "menu://today"})
    script.act("update menu://today")
    script.act("add a tool")
    script.hear(number, "message")
    script.leave(number)
    script.about("There is no such resource.")
    script.request("resources/subscribe", {"uri": "menu://unheard_of"})


def lists_change(script: Script) -> None:
    """Lists change, and the session hears of it."""
    script.connect()
    number = script.open_own_stream()
    for what in ("add a tool", "add a prompt", "add a resource", "remove the tool"):
        script.act(what)
        script.hear(number, "message")
    script.leave(number)


def listen(script: Script) -> None:
    """A client listens: acknowledgement, changes, and the end when the server stops."""
    wish: dict[str, Any] = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
    wish["resourceSubscriptions"] = ["menu://today"]
    number = script.request("subscriptions/listen", {"notifications": wish}, id="listen", hear=("message",))
    for what in ("add a tool", "add a prompt", "add a resource", "update menu://today"):
        script.act(what)
        script.hear(number, "message")
    script.about("A second one wants less, and leaves.")
    params = {"notifications": {"promptsListChanged": True}}
    second = script.request("subscriptions/listen", params, id=2, hear=("message",))
    script.act("remove the tool")
    script.hear(number, "message")
    script.leave(second)
    script.act("stop")
    script.hear(number, "message", "end")
    script.about("A wish of the wrong shape.")
    script.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": "menu://today"}}, valid=False)


def ask_on_the_stream(script: Script) -> None:
    """The server asks the user while a tool, a resource and a prompt run: requests on their streams."""
    script.connect()
    asking: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "greet_user", "arguments": {}}),
        ("resources/read", {"uri": "menu://greeting"}),
        ("prompts/get", {"name": "personal"}),
    ]
    for question, (method, params) in enumerate(asking, 1):
        number = script.request(method, params, hear=("message",))
        script.respond(question, ADA)
        script.hear(number, "message", "end")


def sample_on_the_stream(script: Script) -> None:
    """The server asks the client's model and for its roots, both at once."""
    script.connect()
    number = script.request("tools/call", {"name": "survey", "arguments": {}}, hear=("message", "message"))
    script.respond(2, ROOTS)
    script.respond(1, SAMPLED)
    script.hear(number, "message", "end")


def ask_in_rounds(script: Script) -> None:
    """The server needs an answer of the user: the client sends the request again with it."""
    asking: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "greet_user", "arguments": {}}),
        ("resources/read", {"uri": "menu://greeting"}),
        ("prompts/get", {"name": "personal"}),
    ]
    for question, (method, params) in enumerate(asking, 1):
        script.request(method, params)
        answered = {"requestState": f"<state {question}>", "inputResponses": {"name": ADA}}
        script.request(method, {**params, **answered})
    script.about("An answer that does not fit is asked for again; a state of another request is refused.")
    state = {"requestState": "<state 1>"}
    wrong = {"name": {"action": "accept", "content": {}}}
    script.request("tools/call", {"name": "greet_user", "arguments": {}, **state, "inputResponses": wrong})
    script.request("prompts/get", {"name": "personal", **state, "inputResponses": {"name": ADA}})


def sample_in_rounds(script: Script) -> None:
    """The server needs the client's model and its roots; one answer comes a round later."""
    params = {"name": "survey", "arguments": {}}
    script.request("tools/call", params)
    script.request("tools/call", {**params, "requestState": "<state 1>", "inputResponses": {"dish": SAMPLED}})
    script.request("tools/call", {**params, "requestState": "<state 2>", "inputResponses": {"roots": ROOTS}})


def incapable(script: Script) -> None:
    """The server needs to ask, and the client did not declare that it can be asked."""
    script.connect()
    script.request("tools/call", {"name": "greet_user", "arguments": {}})
    script.request("resources/read", {"uri": "menu://greeting"})


def not_found(script: Script) -> None:
    """What is not there: a resource, a prompt, a tool, a thing to complete, and a path that leads outside."""
    script.connect()
    for uri in ("menu://unheard_of", "menu://dishes/unicorn", "menu://dishes/%2e%2e"):
        script.request("resources/read", {"uri": uri})
    script.request("prompts/get", {"name": "unheard_of"})
    script.request("tools/call", {"name": "unheard_of"})
    params = {"ref": {"type": "ref/prompt", "name": "unheard_of"}, "argument": {"name": "a", "value": ""}}
    script.request("completion/complete", params)


def bad_cursor(script: Script) -> None:
    """Cursors that the server did not give out."""
    script.connect()
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        script.request(method, {"cursor": "unheard of"})


def no_method(script: Script) -> None:
    """Methods that nobody knows, and those of another revision."""
    script.connect()
    known_elsewhere = ("server/discover", "subscriptions/listen") if script.era == "handshake" else ("ping",)
    for method in ("unheard/of", *known_elsewhere):
        script.request(method)


def mismatch(script: Script) -> None:
    """Headers that say something else than the message, and a revision that the server does not have."""
    script.request("tools/list", headers={"mcp-method": "prompts/list"})
    script.request("resources/read", {"uri": "menu://today"}, headers={"mcp-name": "menu://logo"})
    script.request("resources/read", {"uri": "menu://today"}, headers={"mcp-protocol-version": "2025-11-25"})
    version = {"_meta": {META + "protocolVersion": "2099-01-01"}}
    script.request("tools/list", version, headers={"mcp-protocol-version": "2099-01-01"})


def nothing_to_get(script: Script) -> None:
    """There is no stream to get and no session to delete."""
    script.open_own_stream("rest")
    script.delete()


def batch(script: Script) -> None:
    """Several messages in one body."""
    script.connect()
    script.post(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}},
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
            },
            {"jsonrpc": "2.0", "id": 3, "method": "unheard/of"},
        ]
    )


_PRAISE = {"type": "ref/prompt", "name": "praise"}
_DISH = {"type": "ref/resource", "uri": "menu://dishes/{dish}{?half}"}

SCENARIOS = (
    Scenario("initialize", begin_and_end, HANDSHAKES, ELICITS),
    Scenario("initialize-negotiated", negotiate, HANDSHAKES[-1:]),
    Scenario("ping", simple("The client asks whether the server lives.", "ping"), HANDSHAKES),
    Scenario("server-discover", simple("What the server is and can do.", "server/discover"), LATER),
    Scenario("logging-set-level", set_level, HANDSHAKES),
    Scenario("log-level", log_level, LATER),
    Scenario("tools-list", pages("tools/list", "The tools, in two pages.", "c3VydmV5"), ALL),
    Scenario("tools-call", call),
    Scenario("resources-list", pages("resources/list", "The resources, in two pages.", "bWVudTovL2dyZWV0aW5n")),
    Scenario("resources-templates-list", simple("The templates.", "resources/templates/list")),
    Scenario(
        "resources-read",
        simple(
            "Resources are read: a text, bytes, several contents, and one of a template.",
            "resources/read",
            {"uri": "menu://today"},
            {"uri": "menu://logo"},
            {"uri": "menu://week"},
            {"uri": "menu://dishes/fish%20and%20chips?half=true"},
        ),
    ),
    Scenario("resources-subscribe", subscribe, HANDSHAKES),
    Scenario("prompts-list", simple("The prompts.", "prompts/list")),
    Scenario(
        "prompts-get",
        simple(
            "Prompts are got: with arguments, with every kind of content, and wrongly.",
            "prompts/get",
            {"name": "praise", "arguments": {"dish": "soup", "tone": "cool"}},
            {"name": "every_content"},
            {"name": "praise", "arguments": {"tone": "loud"}},
        ),
    ),
    Scenario(
        "completion-complete",
        simple(
            "An argument of a prompt and a variable of a template are completed.",
            "completion/complete",
            {"ref": _PRAISE, "argument": {"name": "dish", "value": "fi"}},
            {"ref": _PRAISE, "argument": {"name": "tone", "value": ""}},
            {"ref": _DISH, "argument": {"name": "dish", "value": "s"}},
            {"ref": _DISH, "argument": {"name": "unheard_of", "value": ""}},
        ),
    ),
    Scenario("list-changed", lists_change, HANDSHAKES),
    Scenario("subscriptions-listen", listen, LATER),
    Scenario("cancelled", cancel),
    Scenario("elicitation", ask_on_the_stream, ("2025-06-18", "2025-11-25"), ELICITS),
    Scenario("sampling-and-roots", sample_on_the_stream, HANDSHAKES, SAMPLES),
    Scenario("input-required", ask_in_rounds, LATER, ELICITS),
    Scenario("input-required-sampling-and-roots", sample_in_rounds, LATER, SAMPLES),
    Scenario("missing-capability", incapable),
    Scenario("not-found", not_found),
    Scenario("bad-cursor", bad_cursor),
    Scenario("method-not-found", no_method),
    Scenario("mismatch", mismatch, LATER),
    Scenario("get-and-delete", nothing_to_get, LATER),
    Scenario("batch", batch, (BATCHES,)),
)
