"""Results of tools from HTTP responses."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._authoring.openapi.http_requests import text_of
from funcmcp._authoring.results.content import Audio, EmbeddedResource, Image, ToolResult
from funcmcp._protocol.codec import InvalidJSONError, decode
from funcmcp._text.visible import visible

if TYPE_CHECKING:
    from funcmcp._authoring.results.content import Content

_TEXT_TYPES = ("application/xml", "application/javascript", "application/yaml", "application/x-ndjson")
_MAX_ERROR_CHARACTERS = 4000


class Response(NamedTuple):
    """A complete HTTP response.

    Attributes:
        status: The status code.
        content_type: The value of the header Content-Type, or "".
        body: The body.
        link: The value of the header Link, or "".
        location: Where a response redirects to, or "".
    """

    status: int
    content_type: str
    body: bytes
    link: str = ""
    location: str = ""


def result_of(response: Response, tool: str) -> ToolResult:
    """Return a response as a tool's result.

    JSON becomes structured content, other texts become a text, images and sounds become blocks of these kinds, and any
    other body becomes an embedded resource. A status of 300 and above is an error with the response's text.

    Args:
        response: The response.
        tool: The tool's name, for the URI of an embedded resource.
    """
    status, body = response.status, response.body
    media, charset = _media(response.content_type)
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        text = _failure(status, media, body, charset)
        if response.location:
            text += f" It redirects to {visible(response.location[:_MAX_ERROR_CHARACTERS])}, which was not followed."
        return ToolResult(text, is_error=True)
    if not body:
        return ToolResult()
    if media == "application/json" or media.endswith("+json"):
        try:
            value = decode(body)
        except InvalidJSONError:
            return ToolResult(body.decode(charset, "replace"))
        return ToolResult(structured_content=value) if isinstance(value, dict | list) else ToolResult(text_of(value))
    if _is_text(media):
        return ToolResult(body.decode(charset, "replace"))
    return ToolResult([_binary(media, body, tool)])


def with_object(result: ToolResult) -> ToolResult:
    """Return a result whose structured content is an object, for a tool with an output schema.

    Any other JSON value, and a text, become the member ``result``. FastMCP does the same.
    """
    value = result.structured_content
    if result.is_error or isinstance(value, dict):
        return result
    if value is not None:
        return ToolResult(result.content, structured_content={"result": value})
    texts = [block for block in result.content if isinstance(block, str)]
    return ToolResult(result.content, structured_content={"result": texts[0]} if texts else {})


def _media(content_type: str) -> tuple[str, str]:
    """Return a content type's media type and its charset. A charset that Python does not support becomes UTF-8."""
    media, _, parameters = content_type.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"')
            try:
                b"\xff".decode(charset, "replace")
            except (LookupError, ValueError):
                break  # Python has no such codec, or one that does not decode texts, such as idna
            return media.strip().lower(), charset
    return media.strip().lower(), "utf-8"


def _is_text(media: str) -> bool:
    return media.startswith("text/") or media in _TEXT_TYPES or media.endswith("+xml")


def _failure(status: int, media: str, body: bytes, charset: str) -> str:
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    summary = f"HTTP {status} {phrase}".strip()
    if not body or not (_is_text(media) or media.endswith("json")):
        return summary
    return f"{summary}: {body.decode(charset, 'replace')[:_MAX_ERROR_CHARACTERS]}"


def _binary(media: str, body: bytes, tool: str) -> Content:
    if media.startswith("image/") and not media.endswith("+xml"):
        return Image(body, mime_type=media)
    if media.startswith("audio/"):
        return Audio(body, mime_type=media)
    return EmbeddedResource(f"tool://{tool}/result", blob=body, mime_type=media or "application/octet-stream")
