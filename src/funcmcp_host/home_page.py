"""The response to ``GET /`` of an app that has no function at this path.

Probes, load balancers and the tests of Azure's extensions wait for a status of 2xx there. The page contains no data of
the app, so it needs no key and is served under every name: a probe sends the address of the machine as its Host.

Source: Microsoft's `HomepageMiddleware
<https://github.com/Azure/azure-functions-host/blob/dev/src/WebJobs.Script.WebHost/Middleware/HomepageMiddleware.cs>`_.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import HTML

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._transports.http.messages import HttpRequest

SETTING = "AzureWebJobsDisableHomepage"
"""The app setting that replaces the page with an empty response if it is true, in any case."""

_METHODS = {"GET", "HEAD"}
_HEADERS = (
    ("content-type", f"{HTML}; charset=utf-8"),
    ("content-security-policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
)
_PAGE = b"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Function app</title>
<h1>The function app is running</h1>
"""


def home_page(request: HttpRequest, settings: Mapping[str, str]) -> HttpResponse | None:
    """Return the page for a request of ``/``, or None for other requests."""
    if request.path != "/" or request.method not in _METHODS:
        return None
    if settings.get(SETTING, "").lower() == "true":
        return HttpResponse(204, ())
    return HttpResponse(200, _HEADERS, _PAGE)
