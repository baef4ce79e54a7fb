"""Published servers answer byte for byte alike with a proxy in front and without one, but for names and URIs.

In lists the members of a definition may have another order, and a member that says what holds without it may be absent.

Each server is played the same requests twice, directly over stdio and through a proxy over HTTP, from the same files.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._client.stdio import default_environment
from tests.instances import PER_REQUEST
from tests.proxy.published import node_server, python_server
from tests.proxy.serving import proxy
from tests.proxy.wire import HANDSHAKE, Members, over_http, over_stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("Published servers are started for each case, some of them on Node.")

Step = tuple[str, dict[str, Any]]
PREFIX = "up"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
DAY = re.compile(r"\d{4}-\d\d-\d\d")
WEEKDAY = re.compile(r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
DATED = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}
AUTHOR = {
    f"GIT_{role}_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in {"NAME": "Ada", "EMAIL": "ada@example.com"}.items()
}


def tool(name: str, **arguments: Any) -> Step:
    return "tools/call", {"name": name, "arguments": arguments}


def read(uri: str) -> Step:
    return "resources/read", {"uri": uri}


TOOLS: Step = ("tools/list", {})
PROMPTS: Step = ("prompts/list", {})
RESOURCES: Step = ("resources/list", {})


def nothing(folder: Path) -> None:
    """Prepare nothing."""
    del folder


@dataclass(frozen=True)
class Server:
    """A published server, and what it is asked.

    Attributes:
        start: Returns the command, for a folder.
        steps: Returns the requests, for a folder.
        prepare: Writes the files.
        env: Returns environment variables, for a folder.
        has_both_eras: Whether the server speaks 2026-07-28 as well.
        varies: What differs between two runs of the server by itself.
    """

    start: Callable[[Path], list[str]]
    steps: Callable[[Path], list[Step]]
    prepare: Callable[[Path], None] = nothing
    env: Callable[[Path], dict[str, str]] = field(default=lambda _: {})
    has_both_eras: bool = False
    varies: tuple[re.Pattern[str], ...] = ()


def write_files(folder: Path) -> None:
    (folder / "menu").mkdir()
    (folder / "menu/pizza.txt").write_text("Margherita\nDiavola\nCrème brûlée 🍕\n", encoding="utf-8")
    (folder / "menu/pixel.png").write_bytes(PIXEL)
    (folder / "empty").mkdir()


def file_steps(folder: Path) -> list[Step]:
    pizza = str(folder / "menu/pizza.txt")
    new = str(folder / "menu/new.txt")
    return [
        TOOLS,
        tool("read_text_file", path=pizza),
        tool("read_text_file", path=pizza, head=1),
        tool("read_text_file", path=pizza, head=1, tail=1),
        tool("read_text_file", path=str(folder / "missing.txt")),
        tool("read_text_file", path="/etc/hostname"),
        tool("read_text_file", path=7),
        tool("read_text_file"),
        tool("read_media_file", path=str(folder / "menu/pixel.png")),
        tool("read_multiple_files", paths=[pizza, str(folder / "missing.txt")]),
        tool("write_file", path=new, content='Ä\u2028\n\ttab \\ "quote" \u0001 😀\n'),
        tool("read_text_file", path=new),
        tool("edit_file", path=pizza, edits=[{"oldText": "Diavola", "newText": "Marinara"}], dryRun=True),
        tool("edit_file", path=pizza, edits=[{"oldText": "not there", "newText": "x"}]),
        tool("create_directory", path=str(folder / "drinks/hot")),
        tool("list_directory", path=str(folder / "menu")),
        tool("list_directory_with_sizes", path=str(folder / "menu"), sortBy="size"),
        tool("directory_tree", path=str(folder)),
        tool("move_file", source=new, destination=str(folder / "moved.txt")),
        tool("search_files", path=str(folder), pattern="**/*.txt"),
        tool("list_allowed_directories"),
    ]


def memory_steps(folder: Path) -> list[Step]:
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs", "Åland 🌊"]}
    return [
        TOOLS,
        tool("create_entities", entities=[ada, {"name": "Engine", "entityType": "machine", "observations": []}]),
        tool("create_entities", entities=[{"name": "Ada"}]),
        tool("create_relations", relations=[{"from": "Ada", "to": "Engine", "relationType": "programs"}]),
        tool("add_observations", observations=[{"entityName": "Ada", "contents": ["countess"]}]),
        tool("add_observations", observations=[{"entityName": "Nobody", "contents": ["x"]}]),
        tool("read_graph"),
        tool("search_nodes", query="åland"),
        tool("open_nodes", names=["Ada", "Nobody"]),
        RESOURCES,
        read("memory://knowledge-graph"),
        tool("delete_observations", deletions=[{"entityName": "Ada", "observations": ["countess"]}]),
        tool("delete_relations", relations=[{"from": "Ada", "to": "Engine", "relationType": "programs"}]),
        tool("delete_entities", entityNames=["Ada"]),
        tool("read_graph"),
    ]


def thinking_steps(folder: Path) -> list[Step]:
    thought = {"thought": "Größer — 大", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 3}
    return [
        TOOLS,
        tool("sequentialthinking", **thought),
        tool("sequentialthinking", **{**thought, "thoughtNumber": 5, "isRevision": True, "revisesThought": 1}),
        tool("sequentialthinking", **{**thought, "branchFromThought": 1, "branchId": "b"}),
        tool("sequentialthinking", **{**thought, "thoughtNumber": "first"}),
        tool("sequentialthinking"),
    ]


def time_steps(folder: Path) -> list[Step]:
    return [
        TOOLS,
        tool("convert_time", source_timezone="Asia/Kathmandu", time="12:30", target_timezone="UTC"),
        tool("convert_time", source_timezone="UTC", time="25:00", target_timezone="UTC"),
        tool("get_current_time", timezone="Mars/Base"),
        tool("get_current_time"),
        tool("get_current_time", timezone=""),
        tool("get_current_time", timezone=7, other=1),
    ]


def make_repository(folder: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", *arguments], cwd=folder, check=True, capture_output=True, env={**os.environ, **DATED, **AUTHOR}
        )

    git("init", "--initial-branch", "main")
    (folder / "a.txt").write_text("one\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "Begin – with ünicode")
    (folder / "a.txt").write_text("two\n", encoding="utf-8")
    (folder / "b.txt").write_text("new\n", encoding="utf-8")


def git_steps(folder: Path) -> list[Step]:
    at = {"repo_path": str(folder)}
    return [
        TOOLS,
        tool("git_status", **at),
        tool("git_diff_unstaged", **at),
        tool("git_add", **at, files=["b.txt"]),
        tool("git_diff_staged", **at),
        tool("git_commit", **at, message="Add b"),
        tool("git_log", **at, max_count=2),
        tool("git_show", **at, revision="HEAD~1"),
        tool("git_show", **at, revision="--output=x"),
        tool("git_show", **at, revision="nowhere"),
        tool("git_create_branch", **at, branch_name="side"),
        tool("git_branch", **at, branch_type="local"),
        tool("git_branch", **at, branch_type="sideways"),
        tool("git_status", repo_path="/nowhere"),
        tool("git_status"),
    ]


def fetch_steps(folder: Path) -> list[Step]:
    url = (folder / "url").read_text(encoding="utf-8")
    return [
        TOOLS,
        PROMPTS,
        tool("fetch", url=url),
        tool("fetch", url=url, raw=True, max_length=20, start_index=3),
        tool("fetch", url=f"{url}missing"),
        tool("fetch", url="no address"),
        tool("fetch"),
        ("prompts/get", {"name": "fetch", "arguments": {"url": url}}),
    ]


SERVERS = {
    "filesystem": Server(lambda folder: node_server("server-filesystem", str(folder)), file_steps, write_files),
    "memory": Server(
        lambda folder: node_server("server-memory"),
        memory_steps,
        env=lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
    ),
    "sequential-thinking": Server(lambda folder: node_server("server-sequential-thinking"), thinking_steps),
    "time": Server(
        lambda folder: python_server("mcp_server_time", "--local-timezone", "Europe/Berlin"),
        time_steps,
        has_both_eras=True,
        varies=(DAY, WEEKDAY),
    ),
    "git": Server(
        lambda folder: python_server("mcp_server_git", "--repository", str(folder)),
        git_steps,
        make_repository,
        env=lambda folder: {**DATED, **AUTHOR},
        has_both_eras=True,
    ),
    "fetch": Server(
        lambda folder: python_server("mcp_server_fetch", "--allow-private-ips"), fetch_steps, has_both_eras=True
    ),
}


class Page(BaseHTTPRequestHandler):
    """Serves one page, and a robots.txt that allows it."""

    def do_GET(self) -> None:
        bodies = {"/robots.txt": b"User-agent: *\nAllow: /\n", "/": "<h1>Mäuse</h1><p>and &amp; cheese</p>".encode()}
        body = bodies.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@contextmanager
def files_of(server: Server, folder: Path, page: str) -> Iterator[Path]:
    """Write a server's files into a folder that is removed afterwards, so that each run begins with the same files."""
    folder.mkdir()
    server.prepare(folder)
    if server.steps is fetch_steps:
        (folder / "url").write_text(page, encoding="utf-8")
    yield folder
    shutil.rmtree(folder)


def exposed(value: Any, prefix: str | None) -> Any:
    """Return what the proxy should make of a response of the upstream: other URIs, and other names in lists."""
    if prefix is None:
        return value
    return Members((name, _exposed(member, prefix, name)) for name, member in value)


def _exposed(value: Any, prefix: str, parent: str) -> Any:
    if isinstance(value, Members):
        changed = Members()
        for name, member in value:
            if name == "name" and parent in {"tools", "prompts"}:
                changed.append((name, f"{prefix}_{member}"))
            elif name == "uri" and isinstance(member, str):
                changed.append((name, member.replace("://", f"://{prefix}/")))
            else:
                changed.append((name, _exposed(member, prefix, name)))
        return changed
    if isinstance(value, list):
        return [_exposed(item, prefix, parent) for item in value]
    return value


def sent(step: Step, prefix: str | None) -> Step:
    """Return the request that the client of the proxy sends for a request of the upstream."""
    method, params = step
    if prefix is None:
        return step
    if "name" in params:
        params = {**params, "name": f"{prefix}_{params['name']}"}
    if "uri" in params:
        params = {**params, "uri": params["uri"].replace("://", f"://{prefix}/")}
    return method, params


def ordered(value: Any) -> Any:
    """Return a value whose members are sorted, without those that say what holds without them."""
    if isinstance(value, Members):
        members = [(name, ordered(member)) for name, member in value]
        return Members(sorted(member for member in members if member not in DEFAULTS))
    return [ordered(item) for item in value] if isinstance(value, list) else value


DEFAULTS = [("execution", Members([("taskSupport", "forbidden")]))]


def steady(step: Step, response: Any, server: Server) -> str:
    """Return a response as text, without what differs between two runs."""
    written = repr(ordered(response) if step[0].endswith("/list") else response)
    for pattern in server.varies:
        written = pattern.sub("", written)
    return written


@pytest.mark.parametrize(
    ("era", "prefix"), [(HANDSHAKE, PREFIX), (PER_REQUEST, None)], ids=["handshake, prefix", "per request, no prefix"]
)
@pytest.mark.parametrize("name", SERVERS)
async def test_answers_are_equal_with_a_proxy_and_without_one(
    name: str, era: str, prefix: str | None, page: str, tmp_path: Path
) -> None:
    server = SERVERS[name]
    with files_of(server, tmp_path / "files", page) as folder:
        env = {**default_environment(), **server.env(folder)}
        steps = server.steps(folder)
        async with over_stdio(server.start(folder), era if server.has_both_eras else HANDSHAKE, env) as direct:
            expected = [exposed(await direct.ask(*step), prefix) for step in steps]
    with files_of(server, tmp_path / "files", page) as folder:
        upstream = {"command": server.start(folder), "env": server.env(folder), "prefix": prefix}
        with proxy(upstream) as served:
            async with over_http(served.url, era) as through:
                answers = [await through.ask(*sent(step, prefix)) for step in steps]
    differing = [
        (step, steady(step, wanted, server), steady(step, answer, server))
        for step, wanted, answer in zip(steps, expected, answers, strict=True)
        if steady(step, wanted, server) != steady(step, answer, server)
    ]
    assert not differing, "\n\n".join(f"{step}\ndirectly: {wanted}\nproxied:  {got}" for step, wanted, got in differing)
