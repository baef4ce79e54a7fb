"""Streamable HTTP: one endpoint for both eras. `StreamableHTTP` is a function from HttpRequest to HttpResponse.

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from funcmcp.protocol.jsonrpc import Body
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
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        per_request = _claims_per_request_era(request)
        if request.method != "POST":
            return await self._handshake.delete(request)
        accept = accepts(request.fields.get(b"accept"))
        try:
            value: Any = decode(await request.read(self._options.max_body))
        except BodyTooLargeError:
            return self._too_large()
        except InvalidJSONError as error:
            return refuse(400, PARSE_ERROR, str(error))
        except RepeatedNameError as error:
            return refuse(400, INVALID_REQUEST, str(error))
        message: Body = value if type(value) is list else classify(value)
        if type(value) is dict:
            per_request = per_request or carries_version(value.get("params"))
        era = self._per_request if per_request else self._handshake
        response = await era.post(request, message, accept)
        return response if accept.json else as_stream(response)

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal that a request deserves before its body is read, or None."""
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refuse(refusal[0], INVALID_REQUEST, refusal[1])
        if request.path not in self._paths:
            return refuse(404, INVALID_REQUEST, f"Nothing is here; the MCP endpoint is {self._path}.")
        if request.method == "POST":
            return self._refusal_of_post(request)
        per_request = _claims_per_request_era(request)
        if request.method == "DELETE" and not per_request:
            return None
        allowed = "POST" if per_request else "POST, DELETE"
        return refuse(405, INVALID_REQUEST, f"Use {allowed}.", headers=(("allow", allowed),))

    def _refusal_of_post(self, request: HttpRequest) -> HttpResponse | None:
        fields = request.fields
        if not is_json(fields.get(b"content-type")):
            return refuse(415, INVALID_REQUEST, "Send Content-Type: application/json.")
        encoding = fields.get(b"content-encoding")
        if encoding is not None and encoding.strip().lower() != b"identity":
            return refuse(415, INVALID_REQUEST, "Send the body without a Content-Encoding.")
        accept = accepts(fields.get(b"accept"))
        if not (accept.json or accept.events):
            return refuse(406, INVALID_REQUEST, "Accept application/json and text/event-stream.")
        length = fields.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._options.max_body:
            return self._too_large()
        return None

    def _too_large(self) -> HttpResponse:
        return refuse(413, INVALID_REQUEST, f"The body may have {self._options.max_body} bytes.")


_ERAS = {date.encode(): revision.per_request for date, revision in REVISIONS.items()}


def _claims_per_request_era(request: HttpRequest) -> bool:
    """Tell whether the version header names a revision without a handshake, or none that exists."""
    version = request.fields.get(b"mcp-protocol-version")
    return version is not None and _ERAS.get(version.strip(b" \t"), True)
