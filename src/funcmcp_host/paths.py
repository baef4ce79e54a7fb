r"""The canonical path of a request, which decides its route and its key, and which is sent on.

How it works: `canonical` makes the path of each request canonical before the host looks at it, as ASP.NET Core's server
does. Routes, keys and functions use that text. A program or a worker that serves HTTP itself gets its percent-encoding
(`target_of`), so what it decodes is the text that was checked.

| in the path of the client | in the text |
|---|---|
| ``.`` and ``..`` as a segment, percent-encoded as well | removed with the segment before it, as in RFC 3986 |
| an empty segment (``//``) | kept; `route_patterns.RouteTemplate` matches none with it |
| ``%2F`` | kept as these three characters: it separates no segments |
| other percent-encoded UTF-8 | decoded, once |
| ``%`` before anything else, and bytes that are not UTF-8 (``%ff``, ``%c0%ae``) | kept as these characters |
| ``%00`` | the request is rejected |
| ``\`` | kept: it separates no segments |
| the scheme and the authority of the absolute form, ``#`` and what follows it | removed before |

Kestrel reads the path of the absolute form with .NET's ``Uri``, which takes ``\`` and ``%2F`` for separators, and keeps
``#``. Here a path has one meaning, whatever the form.

Some programs take more than ``/`` for a separator, or ignore what follows a semicolon. They would read ``..%2f``,
``..\`` or ``..;`` as a dot segment, so paths with these are rejected.

Source: RFC 3986 section 5.2.4; dotnet/aspnetcore, Kestrel's PathNormalizer and UrlDecoder; microsoft/reverse-proxy,
RequestUtilities.MakeDestinationAddress, which the Functions host sends requests on with.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

_ENCODED = re.compile(r"(?:%(?!2[Ff])[0-9A-Fa-f]{2})+")
_HIDDEN_DOTS = re.compile(r"(?:^|[/\\]|%2[Ff])\.\.?(?:$|[/\\;]|%2[Ff])")
_PATH_CHARACTERS = "/:@!$&'()*+,;=~"
"""Characters that a path may have without percent-encoding, besides letters, digits, ``-``, ``.`` and ``_``."""


class PathError(ValueError):
    """A path that is not served. The message is the reason, without the path."""


def canonical(exchange: Exchange) -> Exchange:
    """Return an exchange that gets requests with a canonical path, and answers those without one with 400."""

    async def answer(request: HttpRequest) -> HttpResponse:
        try:
            request.path = canonical_path(request.raw_path)
        except PathError as error:
            return refuse(400, INVALID_REQUEST, str(error))
        if not request.query_string.isascii():
            return refuse(400, INVALID_REQUEST, "The query has a character that is not percent-encoded.")
        return await exchange(request)

    return answer


def canonical_path(raw_path: str) -> str:
    """Return the canonical text of a path as a client has sent it.

    Raises:
        PathError: It is not a path, has a NUL character, or dots that other programs may read as a dot segment.
    """
    if not raw_path.startswith("/"):
        raise PathError("The request target is not a path.")
    decoded = _ENCODED.sub(_decoded, raw_path)
    if "\0" in decoded:
        raise PathError("The path has a NUL character.")
    path = _without_dot_segments(decoded)
    if _HIDDEN_DOTS.search(path):
        raise PathError("The path has dots beside %2F, a backslash or a semicolon, which programs read differently.")
    return path


def target_of(request: HttpRequest) -> bytes:
    """Return the target with which a request is sent on: its canonical path, percent-encoded, and its query."""
    path = quote(request.path, safe=_PATH_CHARACTERS)
    return (f"{path}?{request.query_string}" if request.query_string else path).encode("ascii")


def _decoded(match: re.Match[str]) -> str:
    """Return percent-encoded bytes as text; those that are not UTF-8 stay percent-encoded."""
    encoded = match[0]
    parts: list[str] = []
    index = 0
    for character in bytes.fromhex(encoded.replace("%", "")).decode("utf-8", "surrogateescape"):
        size = len(character.encode("utf-8", "surrogateescape"))
        is_valid = not "\ud800" <= character <= "\udfff"
        parts.append(character if is_valid else encoded[3 * index : 3 * (index + size)])
        index += size
    return "".join(parts)


def _without_dot_segments(path: str) -> str:
    """Return a path without its dot segments (RFC 3986 section 5.2.4)."""
    segments = path.split("/")[1:]
    remaining: list[str] = []
    for segment in segments:
        if segment == "..":
            del remaining[-1:]
        elif segment != ".":
            remaining.append(segment)
    if segments[-1] in {".", ".."}:
        remaining.append("")
    return "/" + "/".join(remaining)
