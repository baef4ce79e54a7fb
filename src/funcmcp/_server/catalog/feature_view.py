"""What a `FeatureView` does: it changes the features of a server for each request.

Transforms of `funcmcp.transforms` change features once, when they are added. A view is asked by each request, after
rules of visibility and inside all middleware, so it may depend on the caller. It decides for lists and for requests
that name a feature alike: a feature that it returns for neither does not exist for the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.route import RoutedRequest


class FeatureView(Protocol):
    """Changes the features of a server for each request."""

    async def listed(self, method: str, features: Sequence[Any], context: RequestContext) -> list[Any]:
        """Return the features that a list shows to a caller.

        Args:
            method: The method of the list, such as "tools/list".
            features: The features that the caller may use, in all versions.
            context: The request.
        """

    async def routed(self, context: RequestContext) -> RoutedRequest:
        """Return the request of a context with the feature that its caller has under the name or URI in it.

        Raises:
            MCPError: The caller has no such feature, or may not use it.
        """
