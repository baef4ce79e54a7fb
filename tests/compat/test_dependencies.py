"""Parameters that are not arguments: dependencies, the request and the caller's token."""

# mypy: disable-error-code="untyped-decorator"
# ruff: noqa: B008 - dependencies are defaults in these frameworks

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - annotations of dependencies
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest

from funcmcp import Context as NativeContext
from funcmcp import HTTPOptions, MCPError, Principal
from funcmcp._compat.request_parts import access_token_of
from funcmcp.auth import APIKeys, VerifiedToken
from funcmcp.compat import (
    CallArgument,
    Context,
    CurrentContext,
    CurrentFastMCP,
    CurrentHeaders,
    Depends,
    FastMCP,
    MCPServer,
    Progress,
    Resolve,
    StaticTokenVerifier,
    TokenClaim,
    ToolError,
    get_access_token,
    get_http_headers,
    get_http_request,
)
from funcmcp.testing import Client, accept
from tests.compat import dependency_cases
from tests.patience import PATIENCE
from tests.requirements import require

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")

REPOSITORY = Path(__file__).parents[2]
FASTMCP = REPOSITORY / ".servers/fastmcp/bin/python"

HEADERS = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer abc", "X-Shop": "1"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}


async def call_over_http(mcp: FastMCP, headers: dict[str, str] = HEADERS) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=mcp)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.post("/mcp", json=CALL, headers=headers)


async def test_dependencies_are_created_and_closed_for_each_call() -> None:
    steps: list[str] = []
    mcp = FastMCP("d")

    def settings() -> dict[str, str]:
        steps.append("settings")
        return {"url": "db://"}

    @asynccontextmanager
    async def database(config: dict[str, str] = Depends(settings)) -> AsyncIterator[str]:
        steps.append("open")
        yield config["url"]
        steps.append("close")

    @mcp.tool
    def query(
        sql: str,
        db: Annotated[str, Depends(database)],
        config: dict[str, str] = Depends(settings),
        ctx: Context = CurrentContext(),
        server: FastMCP = CurrentFastMCP(),
    ) -> str:
        steps.append("query")
        return f"{sql} {db} {config['url']} {ctx.fastmcp is server} {server.name}"

    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["sql"]
        assert (await client.call_tool("query", {"sql": "SELECT"})).text == "SELECT db:// db:// True d"
    assert steps == ["settings", "open", "query", "close"]


async def test_progress_as_a_dependency() -> None:
    mcp = FastMCP("p")

    @mcp.tool
    async def work(progress: Progress = Progress()) -> str:
        await progress.set_total(2)
        await progress.increment()
        await progress.set_message("half")
        await progress.increment()
        return "done"

    seen: list[Any] = []
    async with Client(mcp) as client:
        await client.call_tool("work", on_progress=lambda update: seen.append((update.progress, update.total)))
    assert seen == [(0, 2), (1, 2), (2, 2)]


async def test_the_http_request_and_its_headers() -> None:
    mcp = FastMCP("h", stateless_http=True)

    @mcp.tool
    def t(headers: dict[str, str] = CurrentHeaders()) -> dict[str, Any]:
        request = get_http_request()
        return {
            "shop": headers["x-shop"],
            "credentials": [headers["authorization"], headers["cookie"], "mcp-session-id" in headers],
            "forwarded": sorted(get_http_headers()),
            "all": "authorization" in get_http_headers(include_all=True),
            "included": "authorization" in get_http_headers(include={"authorization"}),
            "path": request.url.path,
            "method": request.method,
            "token": get_access_token(),
        }

    sent = {**HEADERS, "Cookie": "a=b", "Mcp-Session-Id": "s", "TE": "x", "Proxy-Authorization": "Basic x"}
    text = (await call_over_http(mcp, sent)).json()["result"]["content"][0]["text"]
    assert json.loads(text) == {
        "shop": "1",
        "credentials": ["Bearer abc", "a=b", False],
        "forwarded": ["accept-encoding", "user-agent", "x-shop"],
        "all": True,
        "included": True,
        "path": "/mcp",
        "method": "POST",
        "token": None,
    }
    assert (await mcp.call_tool("t", raise_on_error=False)).is_error


async def test_a_token_verifier_protects_the_server() -> None:
    tokens: dict[str, dict[str, Any]] = {
        "abc": {"client_id": "app", "scopes": ["read"], "sub": "ann"},
        "weak": {"client_id": "app"},
    }
    mcp = FastMCP("a", auth=StaticTokenVerifier(tokens, required_scopes=["read"]), stateless_http=True)

    @mcp.tool
    def t(subject: str = TokenClaim("sub")) -> str:
        token = get_access_token()
        assert token is not None
        return f"{subject} {token.token} {token.client_id} {token.scopes}"

    assert "ann abc app ['read']" in (await call_over_http(mcp)).text
    assert (await call_over_http(mcp, {**HEADERS, "Authorization": "Bearer x"})).status_code == 401
    assert (await call_over_http(mcp, {"Accept": HEADERS["Accept"]})).status_code == 401
    assert (await call_over_http(mcp, {**HEADERS, "Authorization": "Bearer weak"})).status_code == 401


@pytest.mark.parametrize(("verified", "text"), [(VerifiedToken("of-the-issuer"), "of-the-issuer"), (None, "")])
def test_a_token_for_this_server_alone_has_no_text(verified: VerifiedToken | None, text: str) -> None:
    principal = Principal("ada", client_id="app", scopes=frozenset({"read"}), verified_token=verified)
    token = access_token_of(principal)
    assert (token.token, token.client_id, token.subject, token.scopes) == (text, "app", "ada", ["read"])


async def test_a_key_in_the_authorization_header_is_not_read_as_a_token_of_a_provider() -> None:
    keys = APIKeys({"reporting": "a-key-of-the-tests-1"}, header="Authorization")
    mcp = FastMCP("a", auth=keys, stateless_http=True)

    @mcp.tool
    def t() -> str:
        token = get_access_token()
        assert token is not None
        return f"{token.subject}:{token.token}:"

    headers = {**HEADERS, "Authorization": "Bearer a-key-of-the-tests-1"}
    assert "reporting::" in (await call_over_http(mcp, headers)).text


class Session:
    """A session that notes how it ends."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[str]:
        try:
            yield "session"
        except BaseException as error:
            self.ends.append(type(error).__name__)
            raise
        self.ends.append("commit")


@asynccontextmanager
async def swallow() -> AsyncIterator[str]:
    with suppress(BaseException):
        yield "swallows"


def server_with(session: Session) -> FastMCP:
    mcp = FastMCP("d")

    @mcp.tool
    async def fine(s: str = Depends(session)) -> int:
        return 1

    @mcp.tool
    async def raises(s: str = Depends(session), t: str = Depends(swallow)) -> Any:
        raise LookupError("There is no such item.")

    @mcp.tool
    async def wrong(s: str = Depends(session)) -> object:
        return object()

    @mcp.tool
    def wrong_in_a_thread(s: str = Depends(session)) -> object:
        return object()

    @mcp.tool(timeout=0.05)
    async def slow(s: str = Depends(session)) -> int:
        await asyncio.Event().wait()
        return 1

    @mcp.tool
    async def ask(ctx: Context, s: str = Depends(session), t: str = Depends(swallow)) -> str:
        return str((await ctx.elicit("How many?", int)).data)

    @mcp.resource("shop://broken")
    async def broken(s: str = Depends(session)) -> Any:
        return object()

    @mcp.prompt
    async def advice(s: str = Depends(session)) -> Any:
        return object()

    return mcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_dependency_learns_how_its_call_ends(revision: str) -> None:
    session = Session()
    async with Client(server_with(session), revision=revision) as client:
        assert not (await client.call_tool("fine")).is_error
        for name in ("raises", "wrong", "wrong_in_a_thread", "slow"):
            assert (await client.call_tool(name, raise_on_error=False)).is_error, name
        with pytest.raises(MCPError):
            await client.read_resource("shop://broken")
        with pytest.raises(MCPError):
            await client.get_prompt("advice")
    expected = ["commit", "LookupError", "ToolError", "ToolError", "TimeoutError", "TypeError", "TypeError"]
    assert session.ends == expected


async def test_a_dependency_that_swallows_exceptions_does_not_answer_a_question() -> None:
    session = Session()
    async with Client(server_with(session), revision="2026-07-28", elicit=accept({"value": 3})) as client:
        assert (await client.call_tool("ask")).text == "3"
    assert session.ends == ["InputRequired", "commit"]


async def test_a_commit_of_a_dependency_that_fails_is_the_failure_of_the_call() -> None:
    session = Session()
    mcp = FastMCP("d", mask_error_details=True)

    @asynccontextmanager
    async def failing(s: str = Depends(session)) -> AsyncIterator[str]:
        yield "failing"
        raise RuntimeError("the commit failed")

    @mcp.tool
    async def fine(s: str = Depends(failing)) -> int:
        return 1

    async with Client(mcp) as client:
        result = await client.call_tool("fine", raise_on_error=False)
    assert result.is_error
    assert "error id" in result.text
    assert session.ends == ["RuntimeError"]


@pytest.fixture(scope="module")
def outcomes_of_fastmcp() -> dict[str, dict[str, Any]]:
    python = require("FastMCP (scripts/setup-fastmcp.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    command = [python, "-m", "tests.compat.dependency_cases"]
    ended = subprocess.run(command, capture_output=True, check=True, text=True, timeout=PATIENCE, cwd=REPOSITORY)
    outcomes: dict[str, dict[str, Any]] = json.loads(ended.stdout)
    return outcomes


@pytest.mark.slow("The original answers the same calls.")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_dependencies_are_entered_and_left_as_in_fastmcp(
    outcomes_of_fastmcp: dict[str, dict[str, Any]], revision: str
) -> None:
    here = await dependency_cases.outcomes(partial(Client, revision=revision), dependency_cases.compat)
    differences = {case for case, features in here.items() if features != outcomes_of_fastmcp[case]}
    assert differences == {"suppressed failure"}


async def test_a_dependency_that_suppresses_the_failure_does_not_hide_it() -> None:
    # FastMCP answers with null in place of a result, or with an error about its type.
    case = {"suppressed failure": dependency_cases.CASES["suppressed failure"]}
    here = await dependency_cases.outcomes(Client, dependency_cases.compat, case)
    assert here["suppressed failure"].pop("end") == []
    for outcome in here["suppressed failure"].values():
        assert outcome == {"answers": ["error: secret"], "steps": ["enter", "exit ValueError"]}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_plain_dependencies_of_a_plain_tool_run_in_its_thread(revision: str) -> None:
    steps: list[str] = []
    threads: set[int] = set()
    mcp = FastMCP("shop")

    class Connection(sqlite3.Connection):
        def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
            threads.add(threading.get_ident())
            steps.append("commit" if kind is None else kind.__name__)
            try:
                return super().__exit__(kind, error, traceback)
            finally:
                self.close()

    def connect() -> sqlite3.Connection:
        threads.add(threading.get_ident())
        return sqlite3.connect(":memory:", factory=Connection)

    @mcp.tool
    def count(db: sqlite3.Connection = Depends(connect), *, fails: bool = False) -> int:
        threads.add(threading.get_ident())
        if fails:
            raise LookupError
        row: tuple[int] = db.execute("SELECT 3").fetchone()
        return row[0]

    @mcp.tool
    def lazily(db: sqlite3.Connection = Depends(connect)) -> list[int]:
        return (row[0] for row in db.execute("SELECT 3"))  # type: ignore[return-value] # read as a list

    @mcp.tool(task=True)
    async def in_the_loop(db: sqlite3.Connection = Depends(connect)) -> int:
        return sum(row[0] for row in db.execute("SELECT 3"))

    async with Client(mcp, revision=revision) as client:
        assert (await client.call_tool("count")).structured_content == {"result": 3}
        assert len(threads) == 1
        assert threading.get_ident() not in threads
        assert (await client.call_tool("lazily")).structured_content == {"result": [3]}
        assert (await client.call_tool("count", {"fails": True})).is_error
        assert (await client.call_tool("in_the_loop")).structured_content == {"result": 3}
    assert steps == ["commit", "commit", "LookupError", "commit"]
    assert threading.get_ident() in threads


@pytest.mark.parametrize("kind", ["dependency", "resolver", "once"])
async def test_more_plain_functions_run_at_once_than_asyncio_has_threads(kind: str) -> None:
    number = 40  # asyncio's own pool has 32 threads at most
    all_run = threading.Barrier(number)
    mcp = FastMCP("shop")

    def wait() -> int:
        return min(all_run.wait(PATIENCE), 0)

    @mcp.tool
    def dependency(value: int = Depends(lambda: 1)) -> int:
        return value + wait()

    @mcp.tool
    async def resolver(value: Annotated[int, Resolve(wait)]) -> int:
        return value + 1

    @mcp.tool
    async def once(context: NativeContext) -> int:
        return await context.once("a", wait) + 1

    async with Client(mcp) as client:
        results = await asyncio.gather(*(client.call_tool(kind) for _ in range(number)))
    assert [result.structured_content for result in results] == [{"result": 1}] * number


async def test_a_task_enters_and_leaves_its_dependencies() -> None:
    steps: list[str] = []
    mcp = FastMCP("shop")

    @contextmanager
    def transaction() -> Iterator[str]:
        steps.append("begin")
        yield "transaction"
        steps.append("commit")

    @mcp.tool(task=True)
    async def order(db: str = Depends(transaction)) -> str:
        steps.append(db)
        return "ordered"

    async with Client(mcp) as client:
        task = await client.start_tool("order")
        assert (await task.result()).text == "ordered"
    assert steps == ["begin", "transaction", "commit"]


async def test_a_check_of_a_context_manager_refuses_over_http() -> None:
    mcp = FastMCP("h", stateless_http=True)

    @contextmanager
    def require_admin() -> Iterator[None]:
        if "x-admin" not in get_http_headers():
            raise ToolError("forbidden")
        yield

    @mcp.tool
    def t(_: None = Depends(require_admin)) -> str:
        return "dropped"

    assert "forbidden" in (await call_over_http(mcp)).text
    assert "dropped" in (await call_over_http(mcp, {**HEADERS, "X-Admin": "1"})).text


async def test_arguments_that_only_dependencies_take_are_arguments_of_the_tool() -> None:
    mcp = FastMCP("shop")

    def account(user: Annotated[int, CallArgument("user_id")], region: str = CallArgument(default="eu")) -> str:
        return f"{user} in {region}"

    @mcp.tool
    def show(greeting: str, account: str = Depends(account)) -> str:
        return f"{greeting} {account}"

    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["greeting", "user_id", "region"]
        assert tool.input_schema["required"] == ["greeting", "user_id"]
        assert tool.input_schema["properties"]["user_id"]["type"] == "integer"
        assert (await client.call_tool("show", {"greeting": "hi", "user_id": 5})).text == "hi 5 in eu"
        assert (await client.call_tool("show", {"greeting": "hi", "user_id": "x"})).is_error
        assert (await client.call_tool("show", {"greeting": "hi", "user_id": 5, "account": "theirs"})).is_error


async def test_a_dependency_that_needs_itself_is_an_error() -> None:
    mcp = FastMCP("shop")

    def first(second: str = CallArgument("second")) -> str:
        return second

    def other(first: str = CallArgument("first")) -> str:
        return first

    @mcp.tool
    def show(first: str = Depends(first), second: str = Depends(other)) -> str:
        return f"{first} {second}"

    result = await mcp.call_tool("show", raise_on_error=False)
    assert result.text == "Error calling tool 'show': Failed to resolve dependency 'first' for show"


def test_a_reference_to_an_argument_is_optional_or_has_a_default() -> None:
    with pytest.raises(TypeError, match="optional or default, not both"):
        CallArgument("a", optional=True, default=1)


async def test_values_of_different_bindings_are_different() -> None:
    mcp = FastMCP("shop")
    made: list[Any] = []

    def make(value: Any) -> int:
        made.append(value)
        return len(made)

    @mcp.tool
    def show(
        one: int = Depends(make, value=1),
        same: int = Depends(make, value=1),
        true: int = Depends(make, value=True),
        members: int = Depends(make, value=[1]),
        argument: int = Depends(make, value=CallArgument("item", True)),
        inner: int = Depends(make, value=Depends(lambda: 7)),
    ) -> list[int]:
        return [one, same, true, members, argument, inner]

    assert (await mcp.call_tool("show")).structured_content == {"result": [1, 1, 2, 3, 4, 5]}
    assert made == [1, True, [1], None, 7]


def test_a_generator_without_a_decorator_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    Depends(dependency_cases.generator)
    assert "Depends(generator) passes on the generator itself" in caplog.text


@pytest.mark.parametrize("proxies", [0, 1])
@pytest.mark.parametrize("has_starlette", [False, True])
async def test_the_request_has_the_address_of_the_client(
    monkeypatch: pytest.MonkeyPatch, proxies: int, *, has_starlette: bool
) -> None:
    mcp = FastMCP("h", stateless_http=True, http=HTTPOptions(proxies=proxies))

    @mcp.tool
    def t() -> list[Any]:
        request = get_http_request()
        return [request.client.host, request.client.port, request.method]

    if not has_starlette:
        monkeypatch.setitem(sys.modules, "starlette.requests", None)
    transport = httpx2.ASGITransport(app=mcp, client=("192.0.2.9", 4711))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        headers = {**HEADERS, "X-Forwarded-For": "198.51.100.1, 203.0.113.7"}
        answer = (await client.post("/mcp", json=CALL, headers=headers)).json()
    address = "203.0.113.7" if proxies else "192.0.2.9"
    assert json.loads(answer["result"]["content"][0]["text"]) == [address, 0, "POST"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_a_server_returns_the_context_of_the_request(server: Any, revision: str) -> None:
    mcp = server("c")

    @mcp.tool()
    def tool() -> str:
        return str(mcp.get_context().request_context.protocol_version)

    @mcp.resource("c://resource")
    async def resource() -> str:
        return str(mcp.get_context().protocol_version)

    @mcp.prompt()
    def prompt() -> str:
        return str(mcp.get_context().protocol_version)

    async with Client(mcp, revision=revision) as client:
        assert (await client.call_tool("tool")).text == revision
        assert (await client.read_resource("c://resource")).text == revision
        assert revision in str(await client.get_prompt("prompt"))
    with pytest.raises(RuntimeError, match="No active context found"):
        mcp.get_context()
