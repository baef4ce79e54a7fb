"""What a server says in the log when it is about to be served."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING, Any

import pytest

import funcmcp
from funcmcp import Context, HTTPOptions, MCPServer, RegistrationError, ServerInfo, content
from funcmcp._server.connections.hub import RESOURCES
from funcmcp._serving.composition import runtime_of
from funcmcp._state.seal import KEY_BYTES, KeyRing
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._text.other_frameworks import METHOD_OPTIONS
from funcmcp.auth import APIKeys
from funcmcp.http import Uploads
from funcmcp.state import SQLiteState
from tests import schemas
from tests.patience import PATIENCE
from tests.server_options import grouped
from tests.wire.peer import HANDSHAKE, Peer, exchange, initialize

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Names of exceptions, modules and suggestions differ.")

PER_REQUEST = [revision for revision in schemas.REVISIONS if revision not in schemas.HANDSHAKE_REVISIONS]


def asking(**options: Any) -> MCPServer:
    mcp = MCPServer("Küche", **grouped(**{"sessions": SignedSessions(KeyRing()), **options}))

    @mcp.tool
    async def order(context: Context) -> str:
        return "done"

    return mcp


def silent(**options: Any) -> MCPServer:
    mcp = MCPServer("Küche", **grouped(**{"sessions": SignedSessions(KeyRing()), **options}))

    @mcp.tool
    async def order() -> str:
        return "done"

    return mcp


@pytest.mark.parametrize(
    ("server", "sealed"),
    [
        (silent(), "sessions"),
        (asking(), "sessions and its questions to clients"),
        (asking(sessions=MemorySessions(keys=KeyRing())), "questions to clients"),
        (asking(revisions=PER_REQUEST), "questions to clients"),
        (silent(http=HTTPOptions(uploads=Uploads())), "sessions"),
        (silent(http=HTTPOptions(uploads=Uploads(folder="files"))), "sessions and its addresses for uploads"),
    ],
)
async def test_what_is_sealed_with_a_random_key_is_said_once_where_other_machines_reach_the_server(
    server: MCPServer, sealed: str, caplog: pytest.LogCaptureFixture
) -> None:
    runtime_of(server).begin()
    runtime_of(server).on_listening("127.0.0.1")
    assert warnings(caplog) == []
    for address in ("0.0.0.0", "10.0.0.7"):
        runtime_of(server).on_listening(address)
    [warning] = warnings(caplog)
    assert warning == (
        f"Küche has a random key, and other machines can reach it: its {sealed} can only be used by this process. "
        "To share a key with other processes and later starts, set FUNCMCP_KEYS."
    )


@pytest.mark.parametrize("is_shared", [True, False])
async def test_state_that_later_starts_can_not_read_is_said_when_the_server_starts(
    is_shared: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = SQLiteState(tmp_path / "x.db") if is_shared else "memory"
    server = silent(sessions=MemorySessions(keys=KeyRing()), state=state)
    runtime_of(server).begin()
    runtime_of(server).on_listening("10.0.0.7")
    assert [text.partition(" To share")[0] for text in warnings(caplog)] == is_shared * [
        "Küche has a random key, and a store has the state of its callers: its state can only be used by this process."
    ]


async def test_a_server_that_starts_again_after_a_shutdown_serves_streams_again() -> None:
    serving = runtime_of(silent())
    for _ in range(2):
        await serving.start()
        with serving.server.hub.listening(lambda _: True) as changes:
            serving.publish(None)
            assert await anext(changes) == RESOURCES
            serving.drain()
            assert await anext(changes, None) is None
        await serving.aclose()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "/run/orders.sock", "testserver"]
)
async def test_on_an_address_of_this_machine_alone_nothing_is_said(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = silent()
    runtime_of(server).begin()
    runtime_of(server).on_listening(address)
    assert warnings(caplog) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "fe80::1%eth0", "::ffff:10.0.0.1"])
async def test_an_address_that_others_reach_is_known_as_one(address: str, caplog: pytest.LogCaptureFixture) -> None:
    runtime_of(silent()).on_listening(address)
    assert len(warnings(caplog)) == 1


async def test_the_address_of_the_first_request_counts_where_the_asgi_server_has_told_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = silent(http=HTTPOptions(allowed_hosts=["*"]))
    pairs = [("host", "127.0.0.1")]
    await exchange(server, "GET", pairs, server=None).answer()
    assert warnings(caplog) == []
    server = silent(http=HTTPOptions(allowed_hosts=["*"]))
    for _ in range(2):
        await exchange(server, "GET", pairs, server=("192.0.2.1", 80)).answer()
    [warning] = warnings(caplog)
    assert "other machines can reach it" in warning


async def test_a_session_of_an_earlier_start_is_said_once_when_it_comes(caplog: pytest.LogCaptureFixture) -> None:
    before, now = silent(), silent()
    peer = Peer(before)
    peer.session_id = (await peer.post(initialize(HANDSHAKE))).header("mcp-session-id")
    peer.app = now
    for _ in range(2):
        assert (await peer.request("tools/list")).status == 404
    [warning] = warnings(caplog)
    assert warning.startswith(
        "Küche has a random key, and a client sent a session id or an answer that another process or an earlier start "
        "sealed: its sessions can only be used by this process"
    )


async def test_an_invented_session_id_is_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer(silent(), session_id="invented")
    assert (await peer.request("tools/list")).status == 404
    assert warnings(caplog) == []


async def test_a_session_that_a_configured_key_does_not_open_is_not_about_random_keys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = Peer(silent())
    peer.session_id = (await peer.post(initialize(HANDSHAKE))).header("mcp-session-id")
    peer.app = silent(sessions=SignedSessions(KeyRing([b"k" * KEY_BYTES])))
    assert (await peer.request("tools/list")).status == 404
    assert warnings(caplog) == []


async def test_under_gunicorn_it_is_said_at_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "gunicorn/23.0.0")
    runtime_of(silent()).begin()
    [warning] = warnings(caplog)
    assert "this is one of several processes" in warning


@pytest.mark.parametrize(
    ("command", "variables", "warns"),
    [
        ("gunicorn -w 1 shop:mcp", {}, False),
        ("gunicorn -w1 shop:mcp", {}, False),
        ("gunicorn --workers=1 shop:mcp", {}, False),
        ("gunicorn --workers 1 -w 4 shop:mcp", {}, True),
        ("gunicorn shop:mcp", {}, True),  # gunicorn.conf.py may have a number
        ("/usr/bin/granian shop:mcp", {}, False),
        ("/usr/bin/granian shop:mcp", {"GRANIAN_WORKERS": "2"}, True),
        ("/usr/bin/granian shop:mcp --workers", {}, False),
    ],
)
async def test_the_only_worker_is_not_one_of_several_processes(
    command: str,
    variables: dict[str, str],
    warns: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", command.split())
    for name, value in {"SERVER_SOFTWARE": "gunicorn/23.0.0", **variables}.items():
        monkeypatch.setenv(name, value)
    runtime_of(silent()).begin()
    assert bool(warnings(caplog)) is warns


@pytest.mark.parametrize(
    "server",
    [
        silent(sessions=MemorySessions(keys=KeyRing())),
        silent(revisions=PER_REQUEST),
        asking(revisions=schemas.HANDSHAKE_REVISIONS, sessions=MemorySessions(keys=KeyRing())),
        asking(sessions=SignedSessions(KeyRing([b"k" * KEY_BYTES]))),
    ],
)
async def test_a_key_that_nothing_is_lost_with_is_not_spoken_of(
    server: MCPServer, caplog: pytest.LogCaptureFixture
) -> None:
    runtime_of(server).begin()
    runtime_of(server).on_listening("0.0.0.0")
    assert warnings(caplog) == []


def test_icons_of_a_server_are_icon_objects_or_dicts() -> None:
    for icon in (content.Icon("https://x.example/i.png", mime_type="image/png"), {"src": "https://x.example/i.png"}):
        [sent] = runtime_of(MCPServer("icons", info=ServerInfo(icons=[icon]))).server.options.implementation()["icons"]
        assert sent["src"] == "https://x.example/i.png"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"host": "0.0.0.0"}, r"no option 'host'\. Use mcp\.run\(host=\.\.\.\)"),
        ({"port": 1}, r"no option 'port'\. Use mcp\.run\(port=\.\.\.\)"),
        ({"stateless_http": True}, "sessions=None"),
        ({"lifespan": None}, r"Use @mcp\.add_lifespan"),
        ({"path": "/"}, r"Use http=HTTPOptions\(path=\.\.\.\)"),
        ({"rates": None}, r"Use http=HTTPOptions\(rates=\.\.\.\)"),
        ({"page_size": 1}, r"Use protocol=ProtocolOptions\(page_size=\.\.\.\)"),
        ({"title": ""}, r"Use info=ServerInfo\(title=\.\.\.\)"),
        ({"keys": None}, r"Use sessions=SignedSessions\(keys=\.\.\.\)"),
        ({"bus": None}, r"Use sessions=SignedSessions\(bus=\.\.\.\)"),
        ({"json_response": True}, "no option 'json_response'\\. Leave it out: a response is JSON unless"),
        ({"log_level": "DEBUG"}, r"Run the server with funcmcp run --log-level"),
        ({"debug": True}, r"no option 'debug'\. Run the server with"),
        ({"on_duplicate_tools": "error"}, r"Leave it out: a name that is taken is an error"),
        ({"tags": {"a"}}, r"Pass tags= to single tools"),
        ({"mount": None}, r"Call mcp\.mount\(server, prefix=\.\.\.\)"),
        ({"custom_route": None}, r"Write @mcp\.custom_route\(path\)"),
        ({"transport_security": None}, r"Use http=HTTPOptions\(allowed_hosts"),
        ({"colour": 1}, r"no option 'colour'\. Valid options: instructions, version, info, http, auth"),
    ],
)
def test_an_unknown_option_of_a_server_is_refused_with_what_to_write(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        MCPServer("x", **options)


def test_a_text_after_the_name_is_refused_with_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"Write MCPServer\('x', instructions='text'\)"):
        MCPServer("x", "text")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, r'^MCPServer needs a name, such as MCPServer\("shop"\); got \'\'\.$'),
        ({"name": 5}, r"^MCPServer needs a name, .*; got 5\.$"),
        ({"http": {"allowed_hosts": ["*"]}}, r"^http must be HTTPOptions\(\.\.\.\); got dict\.$"),
        ({"limits": {"requests": 5}}, r"^limits must be Limits\(\.\.\.\); got dict\.$"),
        ({"auth": APIKeys}, r"^auth must be an authenticator, not a class\. Write auth=APIKeys\(\.\.\.\)\.$"),
        ({"auth": "secret"}, r"^auth must be an authenticator, such as APIKeys\({\.\.\.}\), or .*; got str\.$"),
        ({"protocol": 50}, r"^protocol must be ProtocolOptions\(\.\.\.\); got int\.$"),
        ({"info": "A shop."}, r"^info must be ServerInfo\(\.\.\.\); got str\.$"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_when_the_server_is_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        MCPServer(**{"name": "x", **options})


def test_a_mistake_at_registration_says_what_to_write() -> None:
    mcp: Any = MCPServer("x")

    class Order:
        pass

    def ship(order: Order) -> str:
        return ""

    mcp.tool(ship)
    cases: list[tuple[Any, str]] = [
        (lambda: mcp.tool(property()), "A decorator takes a function or a name, not an object of the type property."),
        (lambda: mcp.prompt(5), "A decorator takes a function or a name, not an object of the type int."),
        (lambda: mcp.resource_lister(ship), 'A list of resources needs a scheme. Write @mcp.resource_lister("menu").'),
        (lambda: mcp.resource("today"), "The URI 'today' must begin with a scheme, such as 'menu://'."),
        (
            lambda: mcp.add(ship),
            "mcp.add takes a module, or a class or an object with marked methods. Write mcp.tool(ship) for a function.",
        ),
        (
            lambda: [tool.describe() for tool in runtime_of(mcp).server.catalog.tools],
            (
                "The parameter 'order' of ship has a type that JSON can't carry and that is not a registered service "
                "(Order). Use a dataclass, a TypedDict or a pydantic model, or register the type with mcp.services."
            ),
        ),
    ]
    for mistake, text in cases:
        with pytest.raises(RegistrationError) as refused:
            mistake()
        assert str(refused.value) == text


@pytest.mark.parametrize(
    ("library", "code", "extra"),
    [
        ("azure.functions", "import funcmcp.azure; funcmcp.azure.http_app(MCPServer('x'))", "azure"),
        ("azure.functions", "import funcmcp.azure; funcmcp.azure.trigger_app(MCPServer('x'))", "azure"),
        (
            "azurefunctions",
            "import funcmcp.azure; funcmcp.azure.http_app(MCPServer('x'), streams=True)",
            "azure-streams",
        ),
        ("redis", "import funcmcp._adapters.redis.sessions", "redis"),
        ("opentelemetry", "MCPServer('x').trace()", "otel"),
        ("opentelemetry", "MCPServer('x').measure()", "otel"),
        ("prometheus_client", "MCPServer('x').serve_metrics(9464)", "prometheus"),
        ("joserfc", "import funcmcp._auth.tokens.bearer", "auth"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(library: str, code: str, extra: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None\nfrom funcmcp import MCPServer\n{code}"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    last = ended.stderr.splitlines()[-1]
    assert (ended.returncode, last.endswith(f': pip install "funcmcp[{extra}]"')) == (1, True), last


def test_a_class_without_parentheses_is_not_a_server() -> None:
    mcp: Any = MCPServer
    for register in (
        mcp.tool,
        mcp.prompt,
        mcp.add,
        mcp.tools_from_asgi,
        lambda _: mcp.tool(),
        lambda _: mcp.resource("a://b"),
        lambda _: mcp.resource_lister("menu"),
        lambda _: mcp.run(),
        lambda _: mcp.run("http"),
        lambda _: mcp.run_async(),
        lambda _: mcp.trace(),
        lambda _: mcp.measure(),
        lambda _: mcp.serve_metrics(9464),
    ):
        with pytest.raises(TypeError, match=r'write mcp = MCPServer\("name"\)'):
            register(lambda: "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("FastMCP", "It is called MCPServer here. funcmcp.compat has FastMCP for servers that move here"),
        ("Image", "It is in funcmcp.content"),
        ("UI", "It is in funcmcp.content"),
        ("Client", "It is in funcmcp.client"),
    ],
)
def test_a_name_of_another_framework_leads_to_its_name_here(name: str, hint: str) -> None:
    with pytest.raises(ImportError, match=f"^funcmcp has no {name}\\. {hint}\\.$"):
        exec(f"from funcmcp import {name}")
    with pytest.raises(AttributeError, match=f"^funcmcp has no {name}\\. {hint}$"):
        getattr(funcmcp, name)
    assert not hasattr(funcmcp, name)


def test_an_attribute_of_other_frameworks_is_an_error_that_names_ours() -> None:
    mcp = MCPServer("other names")
    with pytest.raises(AttributeError, match=r"MCPServer has no attribute 'add_tool'\. Use mcp\.tool\(function\)$"):
        _ = mcp.add_tool  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"MCPServer has no attribute 'other'$"):
        _ = mcp.other  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'middleware'\. Use MCPServer\(middleware=\[function\]\), or mcp\.add_m"):
        _ = mcp.middleware  # type: ignore[attr-defined]
    assert not hasattr(mcp, "http_app")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Older Pythons suggest no names.")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("toool", "MCPServer has no attribute 'toool'. Did you mean: 'tool'?"),
        (
            "get_tools",
            "MCPServer has no attribute 'get_tools'. Use await mcp.list_tools(). Did you mean: 'list_tools'?",
        ),
    ],
)
def test_python_adds_its_suggestion_after_one_full_stop(name: str, text: str) -> None:
    try:
        getattr(MCPServer("other names"), name)
    except AttributeError as error:
        lines = traceback.format_exception_only(error)
    assert lines == [f"AttributeError: {text}\n"]


@pytest.mark.parametrize(
    ("method", "option", "advice"),
    [
        ("run", "path", "Write MCPServer(..., http=HTTPOptions(path=...))."),
        ("run", "colour", "Valid options: transport, host, port."),
        ("mount", "namespace", "Write prefix=."),
        ("add_provider", "namespace", "Write prefix=."),
        ("mount", "colour", "Valid options: server, prefix, transforms."),
    ],
)
def test_an_option_that_a_method_does_not_have_is_an_error_that_names_ours(
    method: str, option: str, advice: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(f"mcp.{method} has no option '{option}'. {advice}")):
        getattr(MCPServer("a"), method)(MCPServer("b"), **{option: "x"})


async def test_the_options_of_run_async_are_explained_as_those_of_run() -> None:
    with pytest.raises(TypeError, match=r"mcp.run_async has no option 'stateless_http'\. Write MCPServer\("):
        await MCPServer("a").run_async(stateless_http=True)  # type: ignore[call-arg]


def test_each_option_of_methods_of_other_frameworks_is_none_of_ours() -> None:
    for method, options in METHOD_OPTIONS.items():
        ours = inspect.signature(getattr(MCPServer, method)).parameters
        assert set(options).isdisjoint(ours)


def test_a_uri_and_a_path_may_be_written_by_name() -> None:
    mcp = MCPServer("a")
    assert mcp.resource(uri="menu://today", name="today")(lambda: "soup") is not None
    assert mcp.custom_route(path="/health", methods=["GET"])(lambda: "ok") is not None


@pytest.mark.parametrize("option", ["scope", "allow_anonymus", "include_in_schema"])
def test_a_misspelt_access_of_a_custom_route_does_not_open_it(option: str) -> None:
    with pytest.raises(
        RegistrationError, match=f"Unknown option '{option}'. Valid options: allow_anonymous, scopes, authorize."
    ):
        MCPServer("a").custom_route("/admin", **{option: ["admin"]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lax", True),
        ("unknown_arguments", "ignore"),
        ("auth", APIKeys({"ann": "0123456789abcdef"})),
        ("middleware", []),
    ],
)
def test_an_option_that_would_have_no_effect_later_can_not_be_set(name: str, value: Any) -> None:
    mcp = MCPServer("a")
    with pytest.raises(AttributeError, match=rf"^{name} can't be changed .* Write MCPServer\(\.\.\., {name}=\.\.\.\)$"):
        setattr(mcp, name, value)
    assert (mcp.lax, mcp.unknown_arguments) == (False, "refuse")
    chosen = MCPServer("a", lax=True, unknown_arguments="ignore")
    assert (chosen.lax, chosen.unknown_arguments) == (True, "ignore")


async def test_a_cell_of_a_notebook_may_run_again() -> None:
    mcp = MCPServer("Notebook")
    cell = "@mcp.tool\ndef double(x: int) -> int:\n    return {} * x\n"
    for factor, source in enumerate(["ipykernel_1/2.py", "<ipython-input-3-a>", "<command-4>"], 2):
        exec(compile(cell.format(factor), source, "exec"), {"mcp": mcp})
        assert (await mcp.call_tool("double", {"x": 5})).structured_content == {"result": factor * 5}
    mcp.remove_tool("double")
    exec(compile(cell.format(2), "<ipython-input-5-b>", "exec"), {"mcp": mcp})
    assert len(await mcp.list_tools()) == 1
    with pytest.raises(RegistrationError, match="Duplicate tool name 'double'"):
        exec(compile(cell.format(2), "server.py", "exec"), {"mcp": mcp})
