"""The features of a server with uploads: the tool `create_upload`, and the resources that the files are."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from funcmcp._auth.owner import address_mark, owner_of
from funcmcp._authoring.calling.feature_context import Context  # noqa: TC001 - the tool's signature is read
from funcmcp._authoring.features.resources import make_resource
from funcmcp._authoring.features.tools import make_tool
from funcmcp._authoring.results.content import Contents, contents_of_file
from funcmcp._protocol.errors import ResourceNotFound, ToolError
from funcmcp._state.uploads import PREFIX
from funcmcp._transports.http.endpoints.uploads import FOLDER, ticket_for, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.catalog.features import ResourceTemplate, Tool
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.uploads import UploadStore

_DESCRIPTION = (
    "Return a URL to which the user sends one file, without credentials: curl -T FILE URL. "
    "Afterwards pass `upload` as the argument of the tool that needs the file."
)
_NO_HTTP = (
    "The client is not connected over HTTP, so there is no upload URL. "
    "Pass a small file as a data: URI, or use a tool that takes a path."
)

_NO_UPLOAD = "Resource not found: the file has expired, or it is of another caller."


@dataclass(frozen=True, slots=True)
class UploadURL:
    """A URL to which one file can be sent.

    Attributes:
        upload: What other tools take as the file.
        url: The URL. A PUT or a POST with the file as its body stores the file.
        max_bytes: Bytes that the file may have.
        expires_at: When the URL and the file expire.
    """

    upload: str
    url: str
    max_bytes: int
    expires_at: str


def upload_tool(
    name: str,
    store: UploadStore,
    services: Services,
    *,
    keys: KeyRing,
    endpoint: Callable[[], str],
    url: Callable[[], str | None],
) -> Tool:
    """Return the tool.

    Args:
        name: Its name.
        store: The files of the server.
        services: The server's services.
        keys: Seal the upload URLs.
        endpoint: Returns the path of the endpoint.
        url: Returns the URL of the endpoint as clients reach it; None for that of the request.
    """

    def create_upload(context: Context) -> UploadURL:
        request = context._context  # noqa: SLF001 - the tool is a part of the server
        upload, handle = store.new(address_mark(request.caller), owner_of(request.principal))
        expires = time.time() + store.options.ttl
        upload_url = f"{_url_of(context, endpoint(), url())}{FOLDER}/to/{ticket_for(upload, keys, expires)}/"
        return UploadURL(
            upload=handle, url=upload_url, max_bytes=store.options.file_bytes, expires_at=timestamp(expires)
        )

    options: Any = {"name": name, "description": _DESCRIPTION, "read_only": True, "open_world": False}
    return replace(make_tool(create_upload, options, services), interactive=False)


def upload_resource(store: UploadStore, services: Services) -> ResourceTemplate:
    """Return the template of the resources that uploaded and linked files are. Only their owner can read them."""

    async def upload(file: str, context: Context) -> Contents:
        owner = owner_of(context._context.principal)  # noqa: SLF001 - as above
        stored = await store.read(f"{PREFIX}{file}", owner)
        if stored is None:
            raise ResourceNotFound(f"{PREFIX}{file}", _NO_UPLOAD)
        (_, media_type), data = stored
        return contents_of_file(data, media_type)

    options: Any = {"description": "A file that the caller has uploaded, or that a tool has linked."}
    template = make_resource(upload, uri=f"{PREFIX}{{file}}", options=options, services=services)
    return replace(cast("ResourceTemplate", template), interactive=False)


def _url_of(context: Context, path: str, url: str | None) -> str:
    """Return the URL of the endpoint, without a slash at its end; raise ToolError if the call has none."""
    if url is not None:
        return url.rstrip("/")
    request = context.http_request
    if request is None:
        raise ToolError(_NO_HTTP)
    if request.path.rstrip("/") != path.rstrip("/"):
        raise ToolError("The call came to another endpoint than that of Streamable HTTP, which takes the files.")
    return request.url.partition("?")[0].rstrip("/")
