"""OpenAPI documents from dicts, files and URLs, in JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from funcmcp._adapters.openapi.api_client import httpx2_module
from funcmcp._authoring.openapi.documents import origin_of, title_of_document
from funcmcp._protocol.codec import InvalidJSONError, decode
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._text.visible import visible, visible_url

if TYPE_CHECKING:
    from typing import TypeAlias

    Source: TypeAlias = Mapping[str, Any] | str | Path

_MAX_BYTES = 64 * 1024 * 1024
_OK = 200
_SECONDS = 30
_MAX_REDIRECTS = 5


class LoadedDocument(NamedTuple):
    """An OpenAPI document.

    Attributes:
        members: The document.
        url: Where it was fetched from; None for one that the author has passed.
    """

    members: Mapping[str, Any]
    url: str | None

    @property
    def title(self) -> str:
        """The document's title, or ""."""
        return title_of_document(self.members)


def load(source: Source) -> LoadedDocument:
    """Return a document from a dict, a file or a URL.

    Raises:
        RegistrationError: There is no document, or it is not valid JSON or YAML.
    """
    if isinstance(source, Mapping):
        return LoadedDocument(source, None)
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return LoadedDocument(_document_of(_fetched(source), visible_url(source)), source)
    if isinstance(source, str) and source.lstrip().startswith("{"):
        raise RegistrationError("openapi is a URL, a file or a dict, not a text in JSON. Pass json.loads(text).")
    if callable(source):
        raise RegistrationError(
            "openapi is a URL, a file or a dict, not an application. For its routes, write mcp.tools_from_asgi(app)."
        )
    path = Path(source)
    try:
        size = path.stat().st_size
        text = path.read_bytes() if size <= _MAX_BYTES else b""
    except OSError as error:
        raise RegistrationError(f"The OpenAPI document {str(source)!r} can't be read: {error.strerror}.") from None
    if size > _MAX_BYTES:
        raise RegistrationError(f"The OpenAPI document {str(source)!r} has more than 64 MiB.")
    return LoadedDocument(_document_of(text, str(source)), None)


def _fetched(url: str) -> bytes:
    """Return what a URL contains. Redirections are followed on the same origin only."""
    httpx2 = httpx2_module()
    shown, deadline = visible_url(url), monotonic() + _SECONDS
    try:
        with httpx2.Client(timeout=_SECONDS) as client:
            for _ in range(_MAX_REDIRECTS):
                with client.stream("GET", url, headers={"accept": "application/json, application/yaml, */*"}) as answer:
                    if answer.has_redirect_location:
                        url = _same_origin(url, answer.headers["location"])
                        continue
                    if answer.status_code != _OK:
                        raise RegistrationError(f"{shown} has no OpenAPI document (HTTP {answer.status_code}).")
                    text = bytearray()
                    for part in answer.iter_bytes(64 * 1024):
                        text += part
                        if len(text) > _MAX_BYTES or monotonic() > deadline:
                            raise RegistrationError(f"{shown} has more than 64 MiB, or takes more than {_SECONDS} s.")
                    return bytes(text)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise RegistrationError(f"The OpenAPI document at {shown} can't be fetched ({type(error).__name__}).") from None
    raise RegistrationError(f"{shown} redirects more than {_MAX_REDIRECTS} times.")


def _same_origin(url: str, location: str) -> str:
    target = urljoin(url, location)
    if origin_of(target) != origin_of(url):
        raise RegistrationError(
            f"{visible_url(url)} redirects to {visible(visible_url(target))}. If you trust that server, use its URL."
        )
    return target


def _document_of(text: bytes, source: str) -> dict[str, Any]:
    """Return the document in a text, JSON or YAML.

    Args:
        text: The text.
        source: Where it is from, for errors.

    Raises:
        RegistrationError: The text is not an object in JSON or YAML, or it is YAML and PyYAML is not installed.
    """
    try:
        document = decode(text.removeprefix(b"\xef\xbb\xbf"))
    except InvalidJSONError as error:
        if text.lstrip()[:1] in {b"{", b"["}:
            raise RegistrationError(f"{source} is not valid JSON: {error}") from None
        from funcmcp._adapters.strict_yaml import value_of_yaml  # noqa: PLC0415 - loads PyYAML

        document = value_of_yaml(text, source)
    if not isinstance(document, dict):
        raise RegistrationError(f"{source} is not an OpenAPI document.")
    return document
