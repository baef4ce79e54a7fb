"""The page that people get who open the endpoint in a browser.

How it works: the page is one HTML document with an inline style and an inline script. It contains no data of the
server: its script sends MCP requests of 2026-07-28 to the URL that it came from. So it needs no credentials, and the
Host and Origin checks have passed before `Page.answer` is called.

On a developer's own machine the page also shows the tracebacks of failures (`tracebacks`). It offers a sign-in if the
server checks who is calling.

The document is put together once in a process from the files in `files` and from tables of this library, which
are constants of the script. The scripts share one scope, in the order of `SCRIPTS`. The Content-Security-Policy allows
exactly this style and this script, by their hashes, and requests to the endpoint's own origin and to the origins of the
authorization servers in the configuration. Trusted Types are required and no policy may exist, so that no script can
turn text into HTML. Frames show documents of this origin only: those of apps (`app_frame`), which have an opaque
origin. Origin-Agent-Cluster lets Chromium run these frames in a process of their own, so that an app with an endless
loop does not stop the page.

Source: Content Security Policy Level 3; Trusted Types; HTML, "origin-keyed agent clusters"; RFC 9110 sections 8.8.3
(ETag) and 12.5.5 (Vary).
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from funcmcp._page.app_frame import app_frame
from funcmcp._page.mcp_clients import page_clients
from funcmcp._protocol.content_blocks import MEDIA_TYPES
from funcmcp._protocol.http_rules import is_cached
from funcmcp._transports.http.admission.origin import is_on_loopback
from funcmcp._transports.http.endpoints.tracebacks import gets_tracebacks
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.options import page_of_environment
from funcmcp._transports.http.status import HTML, accepts_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

SCRIPTS = (
    "elements.js",
    "theme.js",
    "markdown.js",
    "credentials.js",
    "protocol.js",
    "sign_in.js",
    "fields.js",
    "images.js",
    "results.js",
    "icons.js",
    "questions.js",
    "calls.js",
    "activity.js",
    "apps.js",
    "snippets.js",
    "history.js",
    "clients.js",
    "upstreams.js",
    "page.js",
)
"""The files of the script in their order."""

_OK = 200
_NOT_MODIFIED = 304


class Document(NamedTuple):
    """The HTML document.

    Attributes:
        body: The document.
        etag: Its entity tag.
        policy: The sources of its script and its style, for the Content-Security-Policy.
    """

    body: bytes
    etag: str
    policy: str


class Page:
    """Answers browsers with the page.

    Args:
        is_on: Whether there is a page. None: only for requests on loopback.
        has_sign_in: Whether the server checks who is calling.
        authorization_servers: The URLs of the issuers of tokens, from which the page may request tokens.
    """

    def __init__(self, *, is_on: bool | None, has_sign_in: bool, authorization_servers: Sequence[str] = ()) -> None:
        self._is_on = is_on
        self._has_sign_in = has_sign_in
        self._origins = tuple(dict.fromkeys(map(_origin_of, authorization_servers)))

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """Return the response with the page; None if the request does not ask for it or it is off."""
        if not accepts_page(request.fields.get(b"accept")):
            return None
        if self._is_on is None and (request.is_hosted or not is_on_loopback(request)):
            return None
        frame = app_frame(request.query_string)
        if frame is not None:
            return frame
        document = page_document(has_tracebacks=gets_tracebacks(request), has_sign_in=self._has_sign_in)
        headers = (
            ("etag", document.etag),
            ("cache-control", "no-cache"),
            ("vary", "accept"),
            ("content-security-policy", self._policy(document)),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("origin-agent-cluster", "?1"),
        )
        if is_cached(request.fields.get(b"if-none-match"), document.etag):
            return HttpResponse(_NOT_MODIFIED, headers)
        return HttpResponse(_OK, (("content-type", f"{HTML}; charset=utf-8"), *headers), document.body)

    def _policy(self, document: Document) -> str:
        """Return the Content-Security-Policy."""
        return "; ".join(
            (
                "default-src 'none'",
                document.policy,
                " ".join(("connect-src 'self'", *self._origins)),
                "img-src data:",
                "media-src data:",
                "frame-src 'self'",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
                "require-trusted-types-for 'script'",
                "trusted-types 'none'",
            )
        )


def page_of(
    options: HTTPOptions, *, has_sign_in: bool = False, authorization_servers: Sequence[str] = ()
) -> Page | None:
    """Return the page that the options and the environment ask for; None if it is off."""
    is_on = page_of_environment()
    if is_on is None:
        is_on = options.page
    if is_on is False:
        return None
    return Page(is_on=is_on, has_sign_in=has_sign_in, authorization_servers=authorization_servers)


@cache
def page_document(*, has_tracebacks: bool = False, has_sign_in: bool = False) -> Document:
    """Return the document, which is put together from its files.

    Args:
        has_tracebacks: Whether the page asks for the traceback of a failure.
        has_sign_in: Whether the page offers a sign-in before the server asks for one.
    """
    folder = files("funcmcp._page") / "files"
    style = (folder / "style.css").read_text(encoding="utf-8")
    scripts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    tables = {"CLIENTS": page_clients(), "MEDIA_TYPES": MEDIA_TYPES}
    constants = [f"const {name} = {json.dumps(table)};" for name, table in tables.items()]
    script = "\n".join((*constants, *scripts))
    template = (folder / "page.html").read_text(encoding="utf-8")
    data = (" data-tracebacks" if has_tracebacks else "") + (" data-sign-in" if has_sign_in else "")
    template = template.replace("{{data}}", data)
    body = template.replace("{{style}}", style).replace("{{script}}", script).encode()
    policy = f"script-src {_source_of(script)}; style-src {_source_of(style)}"
    return Document(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"', policy)


def _source_of(text: str) -> str:
    """Return the hash that allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
