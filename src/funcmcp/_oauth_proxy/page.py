"""The pages of the proxy: the question whether a client may act for the user, and refusals that say what to do.

How it works: the pages are plain HTML without scripts, and each text from outside is escaped. The policy of the page
forbids everything but the page's own style, whose digest it names, and the icon of the server. It has no `form-action`:
Chrome applies it to all redirects after the form, and these lead to the identity provider and to the client's
application.

The referrer policy of the question is ``same-origin``: with ``no-referrer``, a browser sends the form with
``Origin: null``.

Source: MCP security best practices, "Confused Deputy Problem"; Fetch living standard, "append a request Origin header";
WCAG 2.2 (contrast, focus, size of targets).
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from funcmcp._oauth_proxy.clients import display_name
from funcmcp._oauth_proxy.redirect_uris import destination_of, is_loopback_uri
from funcmcp._oauth_proxy.web import WebAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._oauth_proxy.clients import OAuthClient
    from funcmcp._oauth_proxy.web import WebRequest

_STYLE = """
:root { color-scheme: light dark; --text: #1b1b1f; --quiet: #50505a; --page: #f4f4f6; --card: #fff; --line: #74747e;
  --accent: #0b4fa8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #f0f0f3; --quiet: #c2c2ca; --page: #131316; --card: #1f1f24; --line: #93939d; --accent: #9cc3ff; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem 1rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 32rem; margin: 0 auto; padding: 1.5rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; }
.icon { display: block; margin: 0 0 .75rem; object-fit: contain; }
h1 { margin: 0 0 1rem; font-size: 1.375rem; line-height: 1.3; }
h2 { margin: 1.25rem 0 .25rem; font-size: 1rem; }
p { margin: .5rem 0; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
.note { color: var(--quiet); }
form { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem; }
button { flex: 1 1 8rem; min-height: 2.75rem; padding: .5rem 1rem; border: 2px solid var(--accent);
  border-radius: .5rem; background: var(--card); color: var(--accent); font: inherit; font-weight: 600;
  cursor: pointer; }
button:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode("ascii")
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; frame-ancestors 'none'"
_ICON = re.compile(r"data:image/[a-z0-9.+-]+[;,][!-~]+|https://[A-Za-z0-9.-]+(:[0-9]+)?/[!-~]*")
"""Icons that the pages show: pictures in a data URL or at an https URL, without spaces."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""


class Question(NamedTuple):
    """What the consent page asks.

    Attributes:
        server: The name of the server.
        icons: The icons of the server, as the specification's Icon objects.
        upstream: The name of the identity provider.
        client: The client.
        redirect_uri: Where the user returns to.
        permissions: A sentence for each requested scope.
        action: The URL of the form.
        transaction: The flow, concealed.
        token: Proves that the form came from this page.
    """

    server: str
    icons: Sequence[Mapping[str, Any]]
    upstream: str
    client: OAuthClient
    redirect_uri: str
    permissions: Sequence[str]
    action: str
    transaction: str
    token: str


def consent_page(question: Question) -> WebAnswer:
    """Return the page that asks whether a client may act for the user."""
    server = shown_name(question.server)
    client = shown_name(question.client.name)
    destination = escape(destination_of(question.redirect_uri))
    permissions = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in question.permissions)
    note = ""
    if is_loopback_uri(question.redirect_uri):
        note = (
            '\n<p class="note">This is a program on this computer. Any program on it can use this name: allow it only '
            "if you have just started the sign-in yourself.</p>"
        )
    icon, sources = _icon(question.icons)
    content = f"""{icon}<h1>Allow {client} to use {server}?</h1>
<p>{_introduction(question.client, client, server)}</p>
<h2>It will be able to</h2>
<ul>
{permissions}
</ul>
<h2>After the sign-in you return to</h2>
<p><strong>{destination}</strong></p>{note}
<p class="note">If you allow it, you sign in with {escape(question.upstream)}. If you did not start this, or don't know
the address above, deny it.</p>
<form method="post" action="{escape(question.action)}">
<input type="hidden" name="transaction" value="{escape(question.transaction)}">
<input type="hidden" name="token" value="{escape(question.token)}">
<button name="decision" value="deny">Deny</button>
<button name="decision" value="allow">Allow</button>
</form>"""
    return html_page(200, f"Allow access to {question.server}?", content, referrer="same-origin", pictures=sources)


def refusal_page(request: WebRequest, status: int, title: str, *advice: str) -> WebAnswer:
    """Return a page that says why a sign-in can't go on, and what the user can do."""
    icon, sources = _icon(request.icons)
    paragraphs = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in advice)
    content = f'{icon}<p class="note">{shown_name(request.server)}</p>\n<h1>{escape(title)}</h1>\n{paragraphs}'
    return html_page(status, title, content, referrer="no-referrer", pictures=sources)


def _introduction(client: OAuthClient, name: str, server: str) -> str:
    """Return who asks, as HTML, and how sure that is."""
    if client.host is None:
        request = f"An application that calls itself <strong>{name}</strong> asks to use {server} in your name."
        return f"{request} Its name is not verified."
    application = (
        f"An application of <strong>{escape(client.host)}</strong>, which calls itself <strong>{name}</strong>,"
    )
    return f"{application} asks to use {server} in your name."


def _icon(icons: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return the icon of the server as HTML, and the sources that the policy has to allow for it.

    It says nothing that the name beside it does not say, so it has no text for screen readers.
    """
    usable = [icon for icon in icons if isinstance(icon.get("src"), str) and _ICON.fullmatch(icon["src"])]
    dark = next((icon["src"] for icon in usable if icon.get("theme") == "dark"), None)
    usual = next((icon["src"] for icon in usable if icon.get("theme") != "dark"), dark)
    if usual is None:
        return "", []
    image = f'<img class="icon" src="{escape(usual)}" alt="" width="48" height="48">'
    if dark is None or dark == usual:
        return f"{image}\n", [_source(usual)]
    variant = f'<source media="(prefers-color-scheme: dark)" srcset="{escape(dark)}">'
    return f"<picture>{variant}{image}</picture>\n", list(dict.fromkeys([_source(usual), _source(dark)]))


def _source(url: str) -> str:
    """Return the source of a policy that allows a picture: ``data:``, or its URL without the query."""
    if url.startswith("data:"):
        return "data:"
    parts = urlsplit(url)
    return f"https://{parts.netloc}{quote(parts.path, safe='/%:@!$&()*+=~')}"


def shown_name(name: str) -> str:
    """Return a name as HTML whose direction does not affect the text around it."""
    return f"<bdi>{escape(display_name(name))}</bdi>"


def html_page(status: int, title: str, content: str, *, referrer: str, pictures: Sequence[str] = ()) -> WebAnswer:
    """Return a page.

    Args:
        status: The status.
        title: The title, as text.
        content: The content, as HTML.
        referrer: The referrer policy: ``"same-origin"`` for a page with a form, ``"no-referrer"`` for others.
        pictures: Sources of pictures that its policy allows.
    """
    policy = f"{_POLICY}; img-src {' '.join(pictures)}" if pictures else _POLICY
    html = _PAGE.format(title=escape(display_name(title)), style=_STYLE, content=content)
    headers = (
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", policy),
        ("x-frame-options", "DENY"),
        ("referrer-policy", referrer),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
    )
    return WebAnswer(status, headers, html.encode())
