"""Reload: a good change, a broken one and a good one again, as connected clients notice them."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.testing import Client
from funcmcp_host.folder import FolderError
from funcmcp_host.reload import is_part_of_app
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from funcmcp_host.workers.worker import LoadFailed
from tests.functions_host.apps import write_app
from tests.functions_host.workers.running import running_pids
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")

APP = '''
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool()
def stays() -> str:
    """Stays."""
    return "{answer}"


@app.mcp_tool()
def {name}() -> str:
    """Has another name later."""
    return ""
'''
BLOB = '''

import asyncio
import logging


@app.mcp_tool()
@app.blob_output(arg_name="file", connection="Files", path="%BOX%/c")
def save(file: func.Out[str]) -> str:
    """Saves."""
    logging.warning("quiet")
    file.set("saved")
    return "saved"


@app.mcp_tool()
async def slow() -> str:
    """Waits."""
    await asyncio.sleep(30)
    return ""
'''


@pytest.mark.parametrize(
    ("path", "is_part"),
    [
        ("function_app.py", True),
        ("tools/orders.py", True),
        ("host.json", True),
        ("local.settings.json", True),
        ("data.json", False),
        ("notes.txt", False),
        ("app.db", False),
        (".venv/lib/x.py", False),
        ("node_modules/x/index.js", False),
        ("dist/index.js", True),
        (".funcmcp/storage/a.py", False),
    ],
)
def test_code_and_configuration_are_watched(path: str, is_part: bool) -> None:
    assert is_part_of_app(Path("app"), f"app/{path}") is is_part
    assert not is_part_of_app(Path("app"), f"other/{path}")


async def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110 - a process starts meanwhile
        await asyncio.sleep(0.05)
    assert condition()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_good_then_broken_then_good(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_app(tmp_path, APP.format(answer="one", name="before"))
    file = folder / "function_app.py"
    host = FunctionsHost(folder, dict(os.environ), HostSettings(engine="library", reload=True))
    notified: list[dict[str, Any]] = []
    changed: list[int] = []

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    async with Client(exchange, revision="2025-11-25", on_notification=notified.append) as client:
        await host.start()
        host.server.catalog.tools.listeners.append(lambda _feature, count: changed.append(count))
        try:
            await asyncio.sleep(0.3)  # the watch begins
            file.write_text(APP.format(answer="two", name="after"))
            await wait_until(lambda: host.server.catalog.tools.get("after") is not None)
            assert {tool["name"] for tool in await client.list_tools()} == {"stays", "after"}
            assert (await client.call_tool("stays"))["content"][0]["text"] == "two"
            assert changed == [-1, 1]  # the tool that stayed is neither removed nor added
            file.write_text("def broken(:")
            await wait_until(lambda: "The previous one keeps running" in caplog.text)
            assert (await client.call_tool("stays"))["content"][0]["text"] == "two"
            file.write_text(APP.format(answer="three", name="after"))
            await wait_until(lambda: "three" in file.read_text() and len(running_pids(host.worker)) == 1)
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                if (await client.call_tool("stays"))["content"][0]["text"] == "three":
                    break
                await asyncio.sleep(0.1)
            assert (await client.call_tool("stays"))["content"][0]["text"] == "three"
            assert changed == [-1, 1]  # no definition has changed
        finally:
            await host.aclose()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_changes_of_host_json_and_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    code = APP.format(answer="one", name="other") + BLOB
    options = {"extensions": {"mcp": {"serverName": "One", "system": {"webhookAuthorizationLevel": "Anonymous"}}}}
    folder = write_app(tmp_path, code, host={"version": "2.0", **options})
    host = FunctionsHost(folder, dict(os.environ), HostSettings(host="0.0.0.0", engine="library"))

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    async with Client(exchange) as client:
        await host.start()
        try:
            assert [item.is_listed for item in host.left_out] == [True]  # %BOX% is not set
            options["extensions"]["mcp"] = {"serverName": "Two", "system": {"webhookAuthorizationLevel": "Anonymous"}}
            changed = {"version": "2.0", "functionTimeout": "00:00:01", **options}
            changed["logging"] = {"logLevel": {"default": "Error"}}
            write_app(folder, code, host=changed, settings={"BOX": "b"})
            await host._reload()
            assert caplog.messages.count("host.json: the new serverName will be used after a restart.") == 1
            assert host.left_out == []
            assert (await client.call_tool("save"))["content"][0]["text"] == "saved"
            assert (folder / ".funcmcp/storage/Files/b/c").read_text() == "saved"
            result = await client.call_tool("slow")
            assert (
                result["content"][0]["text"] == "The function did not finish in time. The call may have had an effect."
            )
            assert "quiet" not in caplog.text

            write_app(folder, code, host={"version": "2.0", "extensions": {"mcp": {"serverName": "Two"}}})
            with pytest.raises(FolderError, match="requires keys"):
                await host._reload()
            write_app(folder, "import nothing_of_this_name", host={"version": "2.0", **options})
            with pytest.raises(LoadFailed):
                await host._reload()
            assert host.folder.options.timeout == 1
            assert host._features.seconds == 1
        finally:
            await host.aclose()
