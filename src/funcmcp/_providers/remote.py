"""`RemoteProvider`, the base class of providers whose features another server has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._providers.provider import Provider
from funcmcp._server.handlers.lists import Caching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._server.catalog.features import Resource
    from funcmcp._server.catalog.transformed import AnyTransform


class RemoteProvider(Provider):
    """Provides the features of another server, which may be slow, or away.

    No request waits for a server that has failed to answer: its list is read again beside requests.

    Attributes:
        name: The name of the other server, for messages.
        is_optional: Whether an empty list is a right answer as long as the server has never answered.
        completes: Whether the server may complete arguments.
        adds_instructions: Whether the instructions of the other server are added to those of this one.
        caching: How long clients may cache lists with these features.
        on_doubt: Reads a list again with the next request, because it may have changed, and notifies clients if it has.
            It gets the mark of the principal whose list it is, or None for that of all callers, and the seconds after
            which the list is read without a request if clients listen. It can be called from any thread, and is None
            before the provider is added to a server.
    """

    name: str = ""
    is_optional: bool = False
    completes: bool = True
    adds_instructions: bool = False
    caching: Caching = Caching()
    on_doubt: Callable[[str | None, float], None] | None = None

    @property
    def offered(self) -> frozenset[str] | None:
        """The names of the capabilities that the server has; None as long as it has never answered.

        "subscriptions" stands for changes of resources, which it reports.
        """
        return None

    @property
    def is_away(self) -> bool:
        """Whether the server can't be reached, which the log has said."""
        return False

    def unlisted(self, uri: str) -> Resource | None:  # noqa: ARG002 - for subclasses
        """Return a resource for a URI that no listed feature reads, or None if there is none."""
        return None

    def added_instructions(self) -> str | None:
        """Return what is added to the instructions of this server, or None."""
        return None

    def last_transforms(self) -> Sequence[AnyTransform]:
        """Return transforms that come after the prefix, such as one that shortens names."""
        return ()
