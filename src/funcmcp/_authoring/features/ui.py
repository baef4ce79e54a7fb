"""MCP Apps: the page that shows a tool's result, and the permissions of the page.

Source: extension `io.modelcontextprotocol/ui` (SEP-1865), revision 2026-01-26.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public
from funcmcp._protocol.apps import SCHEME, is_page
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_VISIBILITIES = ("model", "app")


@public("funcmcp.content")
class UI:
    """The page that shows a tool's result.

    Args:
        uri: The page's ``ui://`` URI, which is a resource of the server.
        visibility: The callers of the tool: ``"model"``, ``"app"`` (the page), or both.

    Raises:
        RegistrationError: The URI does not begin with ``ui://``, or the visibility is unknown.
    """

    __slots__ = ("wire",)

    def __init__(self, uri: str, *, visibility: Sequence[str] = ()) -> None:
        if not is_page(uri):
            raise RegistrationError(f"{uri!r} is not the URI of a page, which begins with {SCHEME}.")
        _check_values("visibility", visibility, _VISIBILITIES)
        self.wire: dict[str, Any] = {"resourceUri": uri}
        if visibility:
            self.wire["visibility"] = list(visibility)


_CSP = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")


@public("funcmcp.content")
class UIResource:
    """The permissions of a page, and its presentation.

    Args:
        csp: The origins that the page may use, by their purpose: ``connectDomains``, ``resourceDomains``,
            ``frameDomains``, ``baseUriDomains``. Without it, the page can't load anything.
        permissions: The browser features that the page requests: ``camera``, ``microphone``, ``geolocation``,
            ``clipboardWrite``.
        domain: The page's origin, in clients that support separate origins of pages.
        prefers_border: Whether the client should draw a border around the page.

    Raises:
        RegistrationError: An entry of the policy or a permission is unknown, or is not a list.
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
        _check_values("csp", csp or {}, _CSP)
        for name, origins in (csp or {}).items():
            if isinstance(origins, str):
                raise RegistrationError(f"{name} must be a list of origins, not {origins!r}.")
        _check_values("permissions", permissions, _PERMISSIONS)
        members: dict[str, Any] = {
            "csp": None if csp is None else {name: list(origins) for name, origins in csp.items()},
            "permissions": {name: {} for name in permissions} or None,
            "domain": domain,
            "prefersBorder": prefers_border,
        }
        self.wire: dict[str, Any] = without_none(members)


def _check_values(option: str, values: Collection[str], valid: Sequence[str]) -> None:
    if isinstance(values, str) or not set(values) <= set(valid):
        raise RegistrationError(f"Invalid {option} {values!r}. Valid values: {', '.join(map(repr, valid))}.")


def page_meta(ui: str | UI | None) -> dict[str, Any]:
    """Return the members of a tool's ``_meta`` that name its page; none without a page.

    Hosts that are older than the extension's first revision read the URI from the deprecated flat member.
    """
    if ui is None:
        return {}
    if isinstance(ui, str):
        ui = UI(ui)
    return {"ui": ui.wire, "ui/resourceUri": ui.wire["resourceUri"]}
