"""The place beside the endpoint to which callers send files: ``/mcp/uploads``.

How it works: a file comes in one of two ways. With the credentials of the endpoint, a client sends it to ``/uploads``,
and the response has the handle that a tool takes as an argument. Without credentials, a client sends it to the URL
that the tool `create_upload` has returned, ``/uploads/to/<ticket>/``. The ticket is sealed, so no process has to
remember it. It has the digest of the handle, and not the handle: who has the URL can send one file, and can't read
anything. The model has the handle already.

A request passes the same admission as one to the endpoint, with the size of a file in place of that of a message. The
body is read afterwards, part by part, into a file (`funcmcp._state.uploads`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._auth.owner import address_mark, owner_of
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.media_types import BINARY, essence_of, media_type_of_name, plain_name
from funcmcp._server.limits import LimitReachedError
from funcmcp._state.records import to_record, value_of
from funcmcp._state.uploads import FileFacts, NewUpload, UploadExistsError, UploadFullError
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.body import IDENTITY, is_identity, too_large, too_late
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, limit_reached, refuse, wrong_method

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._server.dispatch import Server
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.uploads import StoredUpload, UploadStore
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

FOLDER = "/uploads"
"""The path below that of the endpoint."""

_TICKETS = "/to/"
_PURPOSE = "upload"
_METHODS = ("POST", "PUT")
_RETRY_SECONDS = 60
_MAX_DIGITS = 20
"""Digits of a Content-Length that are read."""

_FORM_TYPE = "application/x-www-form-urlencoded"
"""The type that ``curl --data-binary`` sends for any file."""

_FORM = "Send the file itself, and not a form: curl -T FILE URL, or curl --data-binary @FILE URL."


class Arrival(NamedTuple):
    """A request with a file.

    Attributes:
        facts: The name and media type of the file.
        upload: The file that the ticket in the path allows; None for a request without a ticket.
    """

    facts: FileFacts
    upload: NewUpload | None


def ticket_for(upload: NewUpload, keys: KeyRing, expires: float) -> str:
    """Return the last part of a URL to which a file can be sent, until a time in seconds since 1970."""
    members = {"folder": upload.folder, "id": upload.id, "owner": upload.owner, "expires": expires}
    return keys.seal(_PURPOSE, to_record(members, {}))


class UploadEndpoint:
    """Answers the requests with files, and passes on all others.

    Args:
        server: The server, whose load and limits count, and whose keys seal tickets.
        options: The options of the HTTP endpoints.
        store: Where the files are.
        authentication: Authenticates callers; None admits every caller.
        otherwise: Answers the requests to all other paths.
        clock: Returns the time in seconds since 1970.
    """

    def __init__(
        self,
        server: Server,
        options: HTTPOptions,
        store: UploadStore,
        *,
        authentication: Authentication | None,
        otherwise: Exchange,
        clock: Callable[[], float] = time.time,
    ) -> None:
        limits = server.options.limits
        size = store.options.file_bytes
        check = HeaderCheck(self._examine)
        file_limits = replace(limits, message_bytes=size)
        self._guarded: Admission[Arrival] = Admission(server, options, check, authentication, limits=file_limits)
        self._open: Admission[Arrival] = Admission(server, options, check, None, limits=file_limits)
        self._server = server
        self._store = store
        self._base = options.path.rstrip("/") + FOLDER
        self._seconds = limits.message_seconds
        self._otherwise = otherwise
        self._clock = clock

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        path = request.path
        if path != self._base and not path.startswith(f"{self._base}/"):
            return await self._otherwise(request)
        has_ticket = path.startswith(self._base + _TICKETS)
        arrival = await (self._open.admit(request) if has_ticket else self._guarded.admit(request))
        if isinstance(arrival, HttpResponse):
            return arrival
        requests = self._server.load.requests
        try:
            requests.take(request.caller)
        except LimitReachedError as error:
            return limit_reached(error)
        try:
            return await self._receive(request, arrival)
        finally:
            requests.give_back(request.caller)

    def _examine(self, request: HttpRequest) -> Arrival | HttpResponse:
        """Return what the header of a request says about its file, or the refusal of the request."""
        if request.method not in _METHODS:
            return wrong_method(_METHODS)
        if not is_identity(request.fields.get(b"content-encoding", IDENTITY)):
            return refuse(415, INVALID_REQUEST, "Send the file without a Content-Encoding.")
        content_type = essence_of(request.fields.get(b"content-type", b"").decode("latin-1"))
        if content_type == "multipart/form-data":
            return refuse(415, INVALID_REQUEST, _FORM)
        remainder = request.path.removeprefix(self._base)
        upload = None
        if remainder.startswith(_TICKETS):
            ticket, _, remainder = remainder.removeprefix(_TICKETS).partition("/")
            upload = self._upload_of(ticket)
            if upload is None:
                return refuse(
                    404, INVALID_REQUEST, "The upload URL is not valid, or it has expired. Ask for another one."
                )
        name = remainder.strip("/")
        if "/" in name:
            return refuse(404, INVALID_REQUEST, f"Send the file to {self._base}, or to {self._base}/NAME.")
        name = plain_name(name or request.query_params.get("name", ""))
        if content_type is None or content_type == _FORM_TYPE:
            content_type = media_type_of_name(name) or BINARY
        return Arrival(FileFacts(name, content_type), upload)

    def _upload_of(self, ticket: str) -> NewUpload | None:
        """Return the file that a ticket allows; None if the ticket is invalid or has expired."""
        record = value_of(self._server.keys.open(_PURPOSE, ticket))
        if not isinstance(record, dict):
            return None
        folder, identifier, owner, expires = (record.get(name) for name in ("folder", "id", "owner", "expires"))
        if not isinstance(folder, str) or not isinstance(identifier, str) or not isinstance(expires, float):
            return None
        is_owner = owner is None or isinstance(owner, str)
        return NewUpload(folder, identifier, owner) if is_owner and self._clock() < expires else None

    async def _receive(self, request: HttpRequest, arrival: Arrival) -> HttpResponse:
        """Store a file, and return the response."""
        handle = None
        upload = arrival.upload
        if upload is None:
            upload, handle = self._store.new(address_mark(request.caller), owner_of(request.principal))
        size = self._store.options.file_bytes
        try:
            async with asyncio.timeout(self._seconds):
                stored = await self._store.receive(upload, arrival.facts, request.body_parts(size), _length(request))
        except TimeoutError:
            return too_late(self._seconds)
        except BodyTooLargeError:
            return too_large(size)
        except UploadExistsError:
            return refuse(409, INVALID_REQUEST, "A file was sent to this upload URL already. Ask for another one.")
        except UploadFullError as error:
            return limit_reached(LimitReachedError(str(error), _RETRY_SECONDS, is_caller_limit=error.is_caller_limit))
        return HttpResponse(201, (*JSON_HEADERS, ("cache-control", "no-store")), encode(_description(stored, handle)))


def _length(request: HttpRequest) -> int | None:
    """Return the bytes that a request announces; None if it does not say."""
    length = request.fields.get(b"content-length", b"")
    return int(length[:_MAX_DIGITS]) if length.isdigit() else None


def _description(stored: StoredUpload, handle: str | None) -> dict[str, object]:
    """Return what the sender of a file gets to know; the handle only if it has sent its credentials."""
    description: dict[str, object] = {} if handle is None else {"upload": handle}
    description |= {"name": stored.facts.name, "mimeType": stored.facts.media_type, "size": stored.size}
    return {**description, "expiresAt": timestamp(stored.expires)}


def timestamp(seconds: float) -> str:
    """Return a time in seconds since 1970 in RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
