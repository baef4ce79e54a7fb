"""The frame of an MCP App on the page: ``GET /mcp?app=2026-01-26``.

How it works: a document that the page made itself (`srcdoc`, `blob:`, `data:`) would inherit the page's policy, which
allows no script of others. So the endpoint serves an empty document with a policy of its own. It is sandboxed without
`allow-same-origin`: wherever it is opened, its origin is opaque, and it reads nothing of this server. Only a page of
this origin can embed it. It posts its query there and gets the app's HTML. An app can load another query into its
frame, so the page sends the HTML once for each frame, and only to the query that it has chosen.

By default the policy allows inline scripts and styles and `data:` URLs. The query names the origins that the user has
allowed beyond that, with the names of the app's ``_meta.ui.csp``.

Source: extension `io.modelcontextprotocol/ui` (SEP-1865), revision 2026-01-26; Content Security Policy Level 3; HTML,
"sandboxing".
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import HTML

_NAME = "app="
_MAX_ORIGINS = 20
_ORIGIN = re.compile(
    r"(?:https|wss)://(?:\*\.)?[a-z0-9.-]{1,253}(?::\d{1,5})?|(?:http|ws)://(?:localhost|127\.0\.0\.1)(?::\d{1,5})?",
    re.IGNORECASE | re.ASCII,
)
_DOCUMENT = b"""\
<!doctype html>
<meta charset="utf-8">
<title>App</title>
<script>
(() => {
  const receive = ({ source, data }) => {
    if (source !== parent || typeof data?.html !== "string") return;
    removeEventListener("message", receive);
    document.open();
    document.write(data.html);
    document.close();
  };
  addEventListener("message", receive);
  parent.postMessage({ ready: location.search }, "*");
})();
</script>
"""


def app_frame(query: str) -> HttpResponse | None:
    """Return the frame's document for the query of a URL; None if the query does not ask for it."""
    if not query.startswith(_NAME):
        return None
    headers = (
        ("content-type", f"{HTML}; charset=utf-8"),
        ("cache-control", "no-store"),
        ("content-security-policy", _policy(query)),
        ("x-content-type-options", "nosniff"),
        ("x-dns-prefetch-control", "off"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    )
    return HttpResponse(200, headers, _DOCUMENT)


def _policy(query: str) -> str:
    """Return the Content-Security-Policy with the origins of a query."""
    origins = {
        name: [value for value in values[:_MAX_ORIGINS] if _ORIGIN.fullmatch(value)]
        for name, values in parse_qs(query).items()
    }

    def sources(name: str, *default: str) -> str:
        return " ".join((*default, *origins.get(name, ()))) or "'none'"

    inline = "'unsafe-inline'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {sources('resourceDomains', inline)}",
            f"style-src {sources('resourceDomains', inline)}",
            f"img-src {sources('resourceDomains', 'data:', 'blob:')}",
            f"font-src {sources('resourceDomains', 'data:')}",
            f"media-src {sources('resourceDomains', 'data:', 'blob:')}",
            f"connect-src {sources('connectDomains')}",
            f"frame-src {sources('frameDomains')}",
            f"base-uri {sources('baseUriDomains')}",
            "form-action 'none'",
            "frame-ancestors 'self'",
            "sandbox allow-scripts",
        )
    )
