"""The place for files beside the endpoint, the tool that returns addresses, and files as arguments."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest
from pydantic import BaseModel

import funcmcp.azure
from funcmcp import Context, HTTPOptions, Limits, MCPError, MCPServer, RegistrationError
from funcmcp._protocol.media_types import FILE_HINT
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import APIKeys
from funcmcp.content import ResourceLink, UploadedFile
from funcmcp.http import Uploads
from funcmcp.testing import REVISIONS, Client, MemoryRequest
from funcmcp.transforms import ArgumentChange, ToolChange, ToolTransform

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpResponse

ADA, BOB = "ada-has-a-key-of-16", "bob-has-a-key-of-16"
PATH = "/mcp/uploads"


@dataclass
class Order:
    """An order with the files that belong to it."""

    title: str
    files: list[UploadedFile]


def server(folder: Path | None = None, *, auth: Any = None, limits: Limits | None = None, **options: Any) -> MCPServer:
    http = HTTPOptions(uploads=Uploads(folder=folder, **options))
    mcp = MCPServer("files", http=http, auth=auth, limits=limits)

    @mcp.tool
    def describe(file: UploadedFile) -> str:
        """Describe a file.

        Args:
            file: The file to describe.
        """
        with file.open() as stream:
            assert stream.read() == file.read()
        return f"{file.name} {file.mime_type} {file.size} {file.read()[:5]!r}"

    @mcp.tool
    async def order(order: Order, extra: UploadedFile | None = None) -> list[str]:
        """Order something."""
        files = [*order.files, *([] if extra is None else [extra])]
        return [f"{file.name}: {file.read().decode()}" for file in files]

    return mcp


class URLRequest(MemoryRequest):
    """A request with a query."""

    @property
    def query_string(self) -> str:
        """The query."""
        return urlsplit(self.target).query

    target = ""


async def send(
    mcp: MCPServer, target: str, body: bytes = b"hello", method: str = "POST", **fields: str
) -> HttpResponse:
    lines = {"host": "127.0.0.1", "content-length": str(len(body)), **fields}
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in lines.items()]
    request = URLRequest(method, urlsplit(target).path, pairs, body)
    request.__class__ = type("Sent", (URLRequest,), {"target": target, "__slots__": ()})
    return await runtime_of(mcp).exchange(request)


def described(response: HttpResponse) -> dict[str, Any]:
    assert response.status == 201, response.body
    assert isinstance(response.body, bytes)
    description: dict[str, Any] = json.loads(response.body)
    return description


def text_of(response: HttpResponse) -> str:
    assert isinstance(response.body, bytes)
    return str(json.loads(response.body)["error"]["message"])


async def called(mcp: MCPServer, tool: str, arguments: dict[str, Any], **headers: str) -> str:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    async with Client(mcp, headers=fields) as client:
        return (await client.call_tool(tool, arguments)).text


async def test_a_file_is_sent_and_used(tmp_path: Path) -> None:
    mcp = server(tmp_path)
    response = await send(mcp, f"{PATH}?name=notes.md", b"# Hi")
    assert ("cache-control", "no-store") in response.headers
    description = described(response)
    assert description.keys() == {"upload", "name", "mimeType", "size", "expiresAt"}
    assert await called(mcp, "describe", {"file": description["upload"]}) == "notes.md text/markdown 4 b'# Hi'"


@pytest.mark.parametrize(
    ("target", "content_type", "name", "media_type"),
    [
        (f"{PATH}/report.pdf", "", "report.pdf", "application/pdf"),
        (PATH, "image/PNG; x=y", "file", "image/png"),
        (f"{PATH}/", "application/x-www-form-urlencoded", "file", "application/octet-stream"),
        (f"{PATH}?name=..%2F..%5Cetc%00%E2%80%AE.txt", 'text/"html"', "etc.txt", "text/plain"),
        (f"{PATH}?name={'é' * 200}", "", "é" * 127, "application/octet-stream"),
        (f"{PATH}?name=..", "", "file", "application/octet-stream"),
    ],
)
async def test_names_and_types_are_made_safe(target: str, content_type: str, name: str, media_type: str) -> None:
    fields = {"content_type": content_type} if content_type else {}
    description = described(await send(server(), target, b"hello", "PUT", **fields))
    assert (description["name"], description["mimeType"]) == (name, media_type)


@pytest.mark.parametrize(
    ("target", "fields", "status", "text"),
    [
        (PATH, {"content_type": "multipart/form-data; boundary=x"}, 415, "curl"),
        (PATH, {"content_encoding": "gzip"}, 415, "Content-Encoding"),
        (PATH, {"content_length": "11"}, 413, "10 bytes"),
        (PATH, {"content_length": "9" * 5000}, 413, "10 bytes"),
        (PATH, {"host": "evil.example"}, 421, "Host"),
        (PATH, {"origin": "https://evil.example"}, 403, "Origin"),
        (f"{PATH}/a/b", {}, 404, "/mcp/uploads/NAME"),
        (f"{PATH}/to/", {}, 404, "not valid"),
        (f"{PATH}/to/1.e30.AAAA/", {}, 404, "not valid"),
    ],
)
async def test_a_request_is_refused_before_its_body_is_read(
    target: str, fields: dict[str, str], status: int, text: str
) -> None:
    class Unread(URLRequest):
        __slots__ = ()

        def body_parts(self, limit: int) -> AsyncIterator[bytes]:
            raise AssertionError(limit)

    mcp = server(file_bytes=10)
    lines = {"host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in fields.items()}}
    pairs = [(name.encode(), value.encode()) for name, value in lines.items()]
    response = await runtime_of(mcp).exchange(Unread("POST", target, pairs, b"x"))
    assert response.status == status
    assert text in text_of(response)


async def test_other_methods_are_refused() -> None:
    response = await send(server(), PATH, b"", "GET")
    assert (response.status, dict(response.headers)["allow"]) == (405, "POST, PUT")


async def test_a_body_that_is_larger_than_announced_is_refused() -> None:
    response = await send(server(file_bytes=4), PATH, b"12345", content_length="4")
    assert (response.status, text_of(response)) == (413, "The body may have 4 bytes.")


async def test_a_body_that_does_not_arrive_is_refused() -> None:
    class Slow(MemoryRequest):
        __slots__ = ()

        async def body_parts(self, limit: int) -> AsyncIterator[bytes]:
            yield b"1"
            await self.disconnected()
            yield await self.read(limit)

    mcp = server(limits=Limits(message_seconds=0.01))
    response = await runtime_of(mcp).exchange(Slow("POST", PATH, [(b"host", b"127.0.0.1")], b"2"))
    assert response.status == 408
    assert runtime_of(mcp).server.load.requests.used == 0


async def test_limits_have_answers(tmp_path: Path) -> None:
    mcp = server(tmp_path, files_per_principal=1)
    described(await send(mcp, PATH))
    response = await send(mcp, PATH)
    assert (response.status, dict(response.headers)["retry-after"]) == (429, "60")
    response = await send(server(total_bytes=1), PATH)
    assert response.status == 503
    mcp = server(limits=Limits(requests=1))
    runtime_of(mcp).server.load.requests.take(None)
    assert (await send(mcp, PATH)).status == 503


async def test_a_disk_that_fails_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    mcp = server(tmp_path / "file")
    for _ in range(3):
        response = await send(mcp, PATH)
        assert response.status == 503
        assert ("retry-after", "60") in response.headers
        assert text_of(response) == "The server can't store files now; try again later."
    assert caplog.text.count("Uploads can't be stored") == 1
    assert "Traceback" not in caplog.text


async def test_files_belong_to_the_principal_that_sends_them(tmp_path: Path) -> None:
    mcp = server(tmp_path, auth=APIKeys({"ada": ADA, "bob": BOB}))
    assert (await send(mcp, PATH)).status == 401
    upload = described(await send(mcp, PATH, x_api_key=ADA))["upload"]
    assert "hello" in await called(mcp, "describe", {"file": upload}, x_api_key=ADA)
    assert "no such upload" in await called(mcp, "describe", {"file": upload}, x_api_key=BOB)


@pytest.mark.parametrize("revision", REVISIONS[-2:])
async def test_a_model_gets_an_address_and_the_user_sends_the_file(tmp_path: Path, revision: str) -> None:
    mcp = server(tmp_path, auth=APIKeys({"ada": ADA, "bob": BOB}))
    async with Client(mcp, revision=revision, headers={"x-api-key": ADA}) as client:
        address = (await client.call_tool("create_upload")).structured_content
        assert address is not None
        assert address["max_bytes"] == 64 * 1024 * 1024
        assert "no such upload" in (await client.call_tool("describe", {"file": address["upload"]})).text
        url = urlsplit(address["url"])
        assert (url.scheme, url.netloc) == ("http", "127.0.0.1")
        assert address["upload"].partition(".")[2] not in address["url"]
        description = described(await send(mcp, f"{url.path}photo.jpg", b"jpeg", "PUT"))
        assert description.keys() == {"name", "mimeType", "size", "expiresAt"}
        result = await client.call_tool("describe", {"file": address["upload"]})
        assert result.text == "photo.jpg image/jpeg 4 b'jpeg'"
        response = await send(mcp, url.path, b"other", "PUT")
        assert (response.status, "already" in text_of(response)) == (409, True)
    assert "no such upload" in await called(mcp, "describe", {"file": address["upload"]}, x_api_key=BOB)


async def test_an_address_expires() -> None:
    mcp = server(ttl=1e-9)
    async with Client(mcp) as client:
        address = (await client.call_tool("create_upload")).structured_content
    assert address is not None
    assert (await send(mcp, urlsplit(address["url"]).path)).status == 404


async def test_a_sealed_text_of_another_form_is_no_address() -> None:
    mcp = server()
    keys = runtime_of(mcp).server.keys
    for record in (b"[]", b"{}", b'{"folder": "a", "id": "b", "expires": 9e12, "owner": 5}'):
        ticket = keys.seal("upload", record)
        assert (await send(mcp, f"{PATH}/to/{ticket}/")).status == 404


async def test_the_url_of_the_operator_is_in_the_address() -> None:
    mcp = server(url="https://files.example.com/mcp/")
    async with Client(mcp) as client:
        address = (await client.call_tool("create_upload")).structured_content
    assert address is not None
    assert address["url"].startswith("https://files.example.com/mcp/uploads/to/")


async def test_a_client_without_http_gets_no_address() -> None:
    result = await server().call_tool("create_upload", {})
    assert result.is_error
    assert "data: URI" in result.text


async def test_the_tool_has_another_name_or_is_left_out() -> None:
    async with Client(server(tool_name="new_file")) as client:
        assert "new_file" in [tool.name for tool in await client.list_tools()]
    async with Client(server(tool_name=None)) as client:
        assert [tool.name for tool in await client.list_tools()] == ["describe", "order"]


async def test_an_argument_is_described_and_read() -> None:
    mcp = server()
    async with Client(mcp) as client:
        describe = next(tool for tool in await client.list_tools() if tool.name == "describe")
        assert describe.input_schema["properties"]["file"] == {
            "type": "string",
            "description": f"The file to describe. {FILE_HINT}",
        }
        upload = described(await send(mcp, f"{PATH}/a.txt", b"A"))["upload"]
        order = {"title": "t", "files": [upload, "data:text/plain;name=b%20c.txt;base64,Qg=="]}
        result = await client.call_tool("order", {"order": order, "extra": "data:,C%20"})
        assert result.structured_content == {"result": ["a.txt: A", "b c.txt: B", "file: C "]}
        without = await client.call_tool("order", {"order": {"title": "t", "files": []}})
        assert without.structured_content == {"result": []}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hello", "upload:..."),
        ("https://example.com/a", "upload:..."),
        ("data:text/plain", "no comma"),
        ("data:;base64,%%%", "base64 is invalid"),
        ("upload:x", "no such upload"),
        (5, "string"),
    ],
)
async def test_other_values_are_errors_for_the_model(value: object, text: str) -> None:
    assert text in await called(server(), "describe", {"file": value})


async def test_a_server_without_uploads_takes_small_files() -> None:
    mcp = MCPServer("plain")

    @mcp.tool
    def size(file: UploadedFile) -> int:
        """Return the size of a file."""
        return file.size

    data = base64.b64encode(b"hello").decode()
    assert await called(mcp, "size", {"file": f"data:text/plain;base64,{data}"}) == "5"
    assert "takes no uploads" in await called(mcp, "size", {"file": "upload:a.b"})


async def test_a_mounted_server_takes_files_of_the_server_above() -> None:
    above = MCPServer("above", http=HTTPOptions(uploads=Uploads()))
    mounted = MCPServer("mounted")

    @mounted.tool
    def size(file: UploadedFile) -> int:
        """Return the size of a file."""
        return file.size

    above.mount(mounted, prefix="m")
    upload = described(await send(above, PATH))["upload"]
    assert await called(above, "m_size", {"file": upload}) == "5"


async def test_a_mounted_server_with_a_place_for_files_uses_that_of_the_server_above() -> None:
    mounted = MCPServer("mounted", http=HTTPOptions(uploads=Uploads()))

    @mounted.tool
    def size(file: UploadedFile) -> int:
        """Return the size of a file."""
        return file.size

    gateway = MCPServer("gateway")
    gateway.mount(mounted, prefix="m")
    assert [tool.name for tool in await gateway.list_tools()] == ["m_size"]
    above = MCPServer("above", http=HTTPOptions(uploads=Uploads()))
    above.mount(mounted)
    assert [tool.name for tool in await above.list_tools()] == ["create_upload", "size"]
    upload = described(await send(above, PATH))["upload"]
    assert await called(above, "size", {"file": upload}) == "5"


async def test_an_error_about_a_file_has_the_name_of_the_argument_that_clients_see() -> None:
    mcp = MCPServer("files")

    @mcp.tool
    def size(file: UploadedFile) -> int:
        """Return the size of a file."""
        return file.size

    mcp.add_transform(ToolTransform({"size": ToolChange(arguments={"file": ArgumentChange("document")})}))
    assert (await called(mcp, "size", {"document": "upload:a.b"})).startswith("document: this server takes no uploads")


def linking(folder: Path | None = None, **options: Any) -> MCPServer:
    mcp = server(folder, auth=APIKeys({"ada": ADA, "bob": BOB}), **options)

    @mcp.tool
    async def export(context: Context, path: str = "", name: str | None = None) -> ResourceLink:
        """Return a link to a file."""
        return await context.link_file(path or b"year,sales", name=name)

    return mcp


async def test_a_result_links_to_a_file_for_the_same_caller(tmp_path: Path) -> None:
    mcp = linking(tmp_path)
    file = tmp_path.parent / f"{tmp_path.name}.bin"
    file.write_bytes(b"\0" * 100_000)
    async with Client(mcp, headers={"x-api-key": ADA}) as ada, Client(mcp, headers={"x-api-key": BOB}) as bob:
        [link] = (await ada.call_tool("export", {"name": "sales.csv"})).content
        assert (link["type"], link["name"], link["mimeType"], link["size"]) == (
            "resource_link",
            "sales.csv",
            "text/csv",
            10,
        )
        [contents] = (await ada.read_resource(link["uri"])).contents
        assert (contents["text"], contents["mimeType"]) == ("year,sales", "text/csv")
        assert "sales.csv" in (await ada.call_tool("describe", {"file": link["uri"]})).text
        with pytest.raises(MCPError, match="has expired, or it is of another caller"):
            await bob.read_resource(link["uri"])
        [link] = (await ada.call_tool("export", {"path": str(file)})).content
        assert (link["name"], link["size"]) == (file.name, 100_000)
        [contents] = (await ada.read_resource(link["uri"])).contents
        assert base64.b64decode(contents["blob"]) == b"\0" * 100_000
        [link] = (await ada.call_tool("export")).content
        assert link["name"] == "file"
        [template] = await ada.list_resource_templates()
        assert template.uri_template == "upload:{file}"


async def test_a_link_needs_room_and_a_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mcp = linking(files_per_principal=1)
    async with Client(mcp, headers={"x-api-key": ADA}) as client:
        await client.call_tool("export")
        assert "You have 1 files" in (await client.call_tool("export")).text
    async with Client(linking(file_bytes=1), headers={"x-api-key": ADA}) as client:
        assert (await client.call_tool("export")).is_error
    assert "Uploads.file_bytes allows 1" in caplog.text
    (tmp_path / "file").touch()
    async with Client(linking(tmp_path / "file"), headers={"x-api-key": ADA}) as client:
        assert (await client.call_tool("export")).text == "The server can't store files now; try again later."
    mcp = MCPServer("plain")

    @mcp.tool
    async def export(context: Context) -> ResourceLink:
        """Return a link to a file."""
        return await context.link_file(b"x")

    assert (await mcp.call_tool("export", {})).is_error
    assert "HTTPOptions(uploads=Uploads())" in caplog.text


async def test_a_model_that_is_local_to_a_function_may_contain_files() -> None:
    class Folder(BaseModel):
        files: list[UploadedFile] = []
        folders: list[Folder] = []

    Folder.model_rebuild(_types_namespace={"Folder": Folder, "UploadedFile": UploadedFile})
    mcp = server()

    @mcp.tool
    def total(root: Folder) -> int:
        return sum(file.size for folder in root.folders for file in folder.files)

    root = {"folders": [{"files": ["data:,abc", "data:,de"]}]}
    assert (await mcp.call_tool("total", {"root": root})).structured_content == {"result": 5}


async def test_a_file_arrives_in_parts_over_asgi(monkeypatch: pytest.MonkeyPatch) -> None:
    # An application can't trust chunked bodies where this module is loaded, as another test may have done.
    monkeypatch.delitem(sys.modules, "uvicorn.protocols.http.httptools_impl", raising=False)
    mcp = server()
    transport = httpx2.ASGITransport(app=mcp)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b"x" * 300_000

        response = await client.put(f"{PATH}/big.bin", content=parts())
        assert response.status_code == 201
        assert response.json()["size"] == 900_000


async def test_a_function_app_has_the_place(tmp_path: Path) -> None:
    func = pytest.importorskip("azure.functions")
    mcp = server(tmp_path)
    app: Any = funcmcp.azure.http_app(mcp, route="shop")
    functions = {function.get_function_name(): function for function in app.get_functions()}
    levels = {name: (f.get_trigger().route, f.get_trigger().auth_level.value) for name, f in functions.items()}
    assert levels["shop_uploads"] == ("shop/uploads/{*name}", "function")
    assert levels["shop_addresses"] == ("shop/uploads/to/{*ticket}", "anonymous")

    async def sent(name: str, url: str, body: bytes) -> Any:
        request = func.HttpRequest("POST", url, headers={"host": "localhost:7071"}, params={}, body=body)
        response = await functions[name].get_user_function()(request)
        return response.status_code, json.loads(response.get_body())

    base = "http://localhost:7071/api/shop"
    status, description = await sent("shop_uploads", f"{base}/uploads/a%20b.txt", b"hello")
    assert (status, description["name"]) == (201, "a b.txt")
    assert "a b.txt text/plain 5" in await called(mcp, "describe", {"file": description["upload"]})
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "create_upload", "arguments": {}}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call["params"]["_meta"] = meta  # type: ignore[index]
    fields = {
        "host": "localhost:7071",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "create_upload",
    }
    request = func.HttpRequest("POST", base, headers=fields, params={}, body=json.dumps(call).encode())
    response = await functions["shop"].get_user_function()(request)
    url = json.loads(response.get_body())["result"]["structuredContent"]["url"]
    assert url.startswith(f"{base}/uploads/to/")
    status, description = await sent("shop_addresses", f"{url}c.txt", b"x")
    assert (status, description["name"]) == (201, "c.txt")


def test_a_custom_route_cannot_take_the_path() -> None:
    with pytest.raises(ValueError, match="endpoint"):
        server().custom_route("/mcp/uploads", ["POST"])(lambda: "x")


def test_options_have_the_right_type() -> None:
    with pytest.raises(TypeError, match="Uploads"):
        HTTPOptions(uploads=True)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="name"):
        server(tool_name="not a name")


async def test_several_processes_need_a_shared_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("funcmcp._serving.configuration_checks.may_be_one_of_several", lambda: True)
    with pytest.raises(RuntimeError, match=r"Uploads\(folder"):
        await runtime_of(server()).start()
    runtime = runtime_of(server(tmp_path))
    await runtime.start()
    await runtime.aclose()
