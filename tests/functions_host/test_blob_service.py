"""Blobs in a real Azurite: alone, and as bindings of a served app."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from funcmcp._authoring.calling.threads import Threads
from funcmcp.testing import Client
from funcmcp_host.blob_service import ServiceBlobs
from funcmcp_host.blobs import BlobError
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from tests.cli.processes import funcmcp
from tests.functions_host.apps import write_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse
    from tests.azurite import Azurite

pytestmark = pytest.mark.lowest("Azure's packages for storage send the requests.")

APP = '''
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool()
@app.blob_output(arg_name="file", connection="Files", path="served-notes/{mcptoolargs.name}")
def save(file: func.Out[bytes], name: str, text: str) -> str:
    """Save a note."""
    file.set(text.encode())
    return "saved"


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Files", path="served-notes/{mcptoolargs.name}")
def load(file: func.InputStream, name: str) -> str:
    """Load a note."""
    return "nothing" if file is None else file.read().decode()


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Missing", path="a/b")
def missing(file: func.InputStream) -> str:
    """Has a connection without a setting."""
    return "never"


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Identity", path="a/b")
def identity(file: func.InputStream) -> str:
    """Has a connection with an identity."""
    return "never"


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Malformed", path="a/b")
def malformed(file: func.InputStream) -> str:
    """Has a setting that is not a connection string."""
    return "never"


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Away", path="a/b")
def away(file: func.InputStream) -> str:
    """Has a connection to a service that does not answer."""
    return "never"
'''


@pytest.fixture
async def blobs(azurite: Azurite) -> AsyncIterator[ServiceBlobs]:
    blobs = ServiceBlobs(azurite.connection_string, Threads())
    yield blobs
    await blobs.aclose()


async def test_blobs_are_written_and_read(blobs: ServiceBlobs) -> None:
    assert await blobs.read("service-box/a/b.txt") is None  # without a container
    await blobs.write("service-box/a/b.txt", b"1")  # makes the container
    assert await blobs.read("service-box/other") is None
    await blobs.write("/service-box/a/b.txt", b"22")
    assert await blobs.read("service-box/a/b.txt") == b"22"
    large = os.urandom(9_000_000)
    await blobs.write("service-box/ä b?c#d.bin", large)
    assert await blobs.read("service-box/ä b?c#d.bin") == large


@pytest.mark.parametrize("path", ["service-box", "service-box/../other/x", "../service-box/x", "service-box/a/./b"])
async def test_no_path_leads_out_of_a_container(blobs: ServiceBlobs, path: str) -> None:
    for work in (blobs.read(path), blobs.write(path, b"")):
        with pytest.raises(BlobError):
            await work


async def test_failures_do_not_show_the_account(azurite: Azurite, caplog: pytest.LogCaptureFixture) -> None:
    wrong = ServiceBlobs(azurite.connection_string.replace("AccountKey=E", "AccountKey=F"), Threads())
    for verb, work in (("read", wrong.read("service-box/a")), ("written", wrong.write("service-box/a", b""))):
        with pytest.raises(BlobError) as caught:
            await work
        assert str(caught.value) == (
            f"The blob 'service-box/a' can't be {verb}: the storage service answered with status 403."
        )
    assert "can't be read. " in caplog.text
    await wrong.aclose()
    with pytest.raises(ValueError, match="onnection string"):
        ServiceBlobs("nonsense", Threads())


async def test_a_bad_name_of_a_container_is_refused_by_the_service(blobs: ServiceBlobs) -> None:
    with pytest.raises(BlobError, match="status 400"):
        await blobs.write("x/a", b"")


async def test_the_short_form_is_the_emulator_of_this_machine() -> None:
    blobs = ServiceBlobs("UseDevelopmentStorage=true", Threads())
    assert blobs._client.url.startswith("http://127.0.0.1:10000/devstoreaccount1")
    await blobs.aclose()


async def test_bindings_of_a_served_app(tmp_path: Path, azurite: Azurite) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nothing listens there
        away = azurite.connection_string.replace(str(azurite.port), str(unused.getsockname()[1]))
        settings = {
            "AzureWebJobsFiles": azurite.connection_string,  # the first of the two names
            "Files": "nonsense",
            "Identity__blobServiceUri": "https://account.blob.core.windows.net",
            "Malformed": "nonsense",
            "Away": away,
        }
        host = FunctionsHost(
            write_app(tmp_path, APP, settings=settings),
            dict(os.environ),
            HostSettings(engine="library", blob_service=True),
        )

        async def exchange(http: HttpRequest) -> HttpResponse:
            http.path = PATH
            return await host.exchange(http)

        with patch("funcmcp_host.blob_service._RETRIES", 0):
            await host.start()
        try:
            async with Client(exchange) as client:

                async def call(tool: str, **arguments: Any) -> str:
                    result = await client.call_tool(tool, arguments)
                    return str(result["content"][0]["text"])

                assert await call("load", name="n") == "nothing"
                assert await call("save", name="n", text="téxt") == "saved"
                assert await call("load", name="n") == "téxt"
                assert "is not allowed" in await call("load", name="../other/x")
                assert "the storage service does not answer" in await call("away")
        finally:
            await host.aclose()
    reasons = {item.function: item.reason for item in host.left_out}
    assert reasons.keys() == {"missing", "identity", "malformed"}
    assert reasons["missing"].startswith("The app setting 'Missing' is not set. Set it to a connection string")
    assert "uses an identity" in reasons["identity"]
    assert reasons["malformed"].startswith("The app setting 'Malformed' is not a connection string.")
    assert not (tmp_path / ".funcmcp").exists()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_the_option_needs_the_extra(tmp_path: Path) -> None:
    folder = write_app(tmp_path / "app", APP)
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['azure.storage'] = None\n")
    result = funcmcp("host", str(folder), "--storage", "azure", env={"PYTHONPATH": str(blocked)})
    assert result.returncode == 1
    assert result.stderr.strip() == (
        '--storage azure needs azure-storage-blob. Run: pip install "funcmcp[host-storage]"'
    )
