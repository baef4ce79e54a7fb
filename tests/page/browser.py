"""A browser for tests: scripts of Playwright, run one after another in one browser, and servers for them."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn

from funcmcp._processes.server import origin_of
from tests import nodejs
from tests.patience import PATIENCE
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
HOST = "127.0.0.1"
HOSTS = ("orders.example.test", "evil.example.test")
"""Names of this machine in the browser, which belong to one domain."""


@dataclass(frozen=True)
class Browser:
    """A running Chromium or Firefox.

    Attributes:
        process: The Node program that drives it.
        name: ``"chromium"`` or ``"firefox"``.
    """

    process: subprocess.Popen[str]
    name: str

    def play(self, script: str, args: Any = None, *, errors: Sequence[str] = (), **options: Any) -> Any:
        """Run a script in a new context of the browser and return its value.

        The console must stay empty, which also means that no Content-Security-Policy was violated, and all requests
        must go to this machine.

        Args:
            script: The body of an async function of `page`, `args` and `violations`.
            args: A JSON value for the script.
            errors: Parts of messages on the console that are allowed.
            options: Options of the context.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"script": script, "args": args, "options": options}) + "\n")
        self.process.stdin.flush()
        seen = json.loads(self.process.stdout.readline())
        assert seen["failure"] is None, f"{seen['failure']}\nconsole: {seen['errors']}"
        unexpected = [text for text in seen["errors"] if not any(part in text for part in errors)]
        assert unexpected == [], unexpected
        hosts = {urlsplit(url).hostname for url in seen["requests"] if not url.startswith(("data:", "blob:"))}
        assert hosts <= {HOST, "localhost", *HOSTS}
        return seen["value"]


@contextmanager
def running_browser(name: str = "chromium") -> Iterator[Browser]:
    """Start a browser, ``"chromium"`` or ``"firefox"``, and end it with the block."""
    program = nodejs.browser() if name == "chromium" else nodejs.firefox()
    for package in ("axe-core", "playwright-core", "playwright-firefox"):
        nodejs.package(package)
    command = [str(nodejs.node()), str(HERE / "driver.mjs"), str(nodejs.HOME), name, str(program), str(PATIENCE)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield Browser(process, name)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE)


@contextmanager
def serving(app: Any, path: str = "/mcp") -> Iterator[str]:
    """Serve an ASGI application in a thread and yield the URL of a path."""
    listener = listen(HOST, 0)
    config = uvicorn.Config(app, log_level="warning", lifespan="auto", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"{origin_of(HOST, listener)}{path}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()
        assert not thread.is_alive()
