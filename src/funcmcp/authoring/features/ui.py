"""MCP Apps: which page shows a tool's result, and what the page may do.

Source: extension `io.modelcontextprotocol/ui` (SEP-1865), revision 2026-01-26.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.apps import SCHEME, is_page
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_WHO = ("model", "app")


class UI:
    """The page that shows a tool's result.

    Args:
        uri: the page's ``ui://`` URI, which is a resource of the server.
        visibility: who may call the tool: ``"model"``, ``"app"`` (the page), or both.

    Raises:
        RegistrationError: the URI is no ``ui://`` one, or the visibility is unknown.
    """

    __slots__ = ("wire",)

    def __init__(self, uri: str, *, visibility: Sequence[str] = ()) -> None:
        if not is_page(uri):
            raise RegistrationError(f"A page's URI begins with {SCHEME}; got {uri!r}.")
        if isinstance(visibility, str) or not set(visibility) <= set(_WHO):
            raise RegistrationError(f"visibility is a list of {' and '.join(map(repr, _WHO))}; got {visibility!r}.")
        self.wire: dict[str, Any] = {"resourceUri": uri}
        if visibility:
            self.wire["visibility"] = list(visibility)


_CSP = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")


class UIResource:
    """What a page may do, and how it wants to be shown.

    Args:
        csp: origins by what they are for: ``connectDomains``, ``resourceDomains``, ``frameDomains``,
            ``baseUriDomains``. Without it a page loads nothing from anywhere.
        permissions: browser features that it asks for: ``camera``, ``microphone``, ``geolocation``,
            ``clipboardWrite``.
        domain: the origin that it is shown from, where the client lets pages have one of their own.
        prefers_border: whether the client should draw a border around it.

    Raises:
        RegistrationError: an entry of the policy or a permission is unknown, or is not a list.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        *,
        csp: Mapping[str, Sequence[str]] | None = None,
        permissions: Sequence[str] = (),
        domain: str | None = None,
        prefers_border: bool | None = None,
    ) -> None:
        _check("csp", csp or {}, _CSP)
        for name, origins in (csp or {}).items():
            if isinstance(origins, str):
                raise RegistrationError(f"{name} is a list of origins; got {origins!r}.")
        _check("permissions", permissions, _PERMISSIONS)
        members: dict[str, Any] = {
            "csp": None if csp is None else {name: list(origins) for name, origins in csp.items()},
            "permissions": {name: {} for name in permissions} or None,
            "domain": domain,
            "prefersBorder": prefers_border,
        }
        self.wire = {name: value for name, value in members.items() if value is not None}


def _check(what: str, given: Collection[str], known: Sequence[str]) -> None:
    if isinstance(given, str) or not set(given) <= set(known):
        raise RegistrationError(f"{what} may have {', '.join(map(repr, known))}; got {given!r}.")


def page_meta(ui: str | UI | None) -> dict[str, Any]:
    """Return what a tool's page adds to its ``_meta``."""
    if ui is None:
        return {}
    return {"ui": (UI(ui) if isinstance(ui, str) else ui).wire}
