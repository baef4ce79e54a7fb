"""Streamable HTTP: one endpoint for both eras. `StreamableHTTP` is a function from HttpRequest to HttpResponse.

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.protocol import headers
from funcmcp.protocol.codec import InvalidJSONError, RepeatedNameError, decode
from funcmcp.protocol.envelope import carries_version
from funcmcp.protocol.errors import INVALID_REQUEST, PARSE_ERROR
from funcmcp.protocol.jsonrpc import classify
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.transports.http.handshake import HandshakeEra
from funcmcp.transports.http.messages import BodyTooLargeError, HttpResponse
from funcmcp.transports.http.origin import OriginCheck
from funcmcp.transports.http.per_request import PerRequestEra
from funcmcp.transports.http.status import accepts, is_json, refuse
from funcmcp.transports.http.stream import as_stream

if TYPE_CHECKING:
    from funcmcp.server.dispatch import Server
    from funcmcp.sessions.store import SessionStore
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.options import HTTPOptions


class StreamableHTTP:
    """The endpoint.

    Args:
        server: answers the requests.
        sessions: remembers sessions of the handshake era.
        options: what the operator chose.
        path: where the endpoint is, such as `/mcp`.
    """

    def __init__(self, server: Server, sessions: SessionStore, options: HTTPOptions, *, path: str) -> None:
        self._options = options
        self._path = path
        self._paths = {path, path.rstrip("/"), path.rstrip("/") + "/"}
        self._origin = OriginCheck(options)
        self._per_request = PerRequestEra(server)
        self._handshake = HandshakeEra(server, sessions)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        refusal = self._origin.refusal(request.pairs, request.server)
        if refusal is not None:
            return refuse(refusal[0], INVALID_REQUEST, refusal[1])
        if request.path not in self._paths:
            return refuse(404, INVALID_REQUEST, f"Nothing is here; the MCP endpoint is {self._path}.")
        if request.method == "POST":
            return await self._post(request)
        if request.method == "DELETE" and not _claims_per_request_era(request):
            return await self._handshake.delete(request)
        allowed = "POST" if _claims_per_request_era(request) else "POST, DELETE"
        return refuse(405, INVALID_REQUEST, f"Use {allowed}.", headers=(("allow", allowed),))

    async def _post(self, request: HttpRequest) -> HttpResponse:
        given = request.headers
        if not is_json(given.get("content-type")):
            return refuse(415, INVALID_REQUEST, "Send Content-Type: application/json.")
        if given.get("content-encoding", "identity").strip().lower() != "identity":
            return refuse(415, INVALID_REQUEST, "Send the body without a Content-Encoding.")
        accept = accepts(given.get("accept"))
        if not (accept.json or accept.events):
            return refuse(406, INVALID_REQUEST, "Accept application/json and text/event-stream.")
        try:
            value = decode(await self._body(request))
        except BodyTooLargeError:
            return refuse(413, INVALID_REQUEST, f"The body may have {self._options.max_body} bytes.")
        except InvalidJSONError as error:
            return refuse(400, PARSE_ERROR, str(error))
        except RepeatedNameError as error:
            return refuse(400, INVALID_REQUEST, str(error))
        message = value if type(value) is list else classify(value)
        per_request = type(value) is dict and carries_version(value.get("params"))
        era = self._per_request if per_request or _claims_per_request_era(request) else self._handshake
        response = await era.post(request, message, accept)
        return response if accept.json else as_stream(response)

    async def _body(self, request: HttpRequest) -> bytes:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._options.max_body:
            raise BodyTooLargeError
        return await request.read(self._options.max_body)


def _claims_per_request_era(request: HttpRequest) -> bool:
    """Tell whether the version header names a revision without a handshake, or none that exists."""
    version = request.headers.get(headers.VERSION)
    if version is None:
        return False
    revision = REVISIONS.get(version.strip(" \t"))
    return revision is None or revision.per_request
