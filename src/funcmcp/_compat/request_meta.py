"""The ``_meta`` of a request: a mapping, as in version 2 of the official SDK, with the attributes of version 1."""

from __future__ import annotations

from typing import Any


class RequestMeta(dict[str, Any]):
    """The members of a request's ``_meta`` by their names in the protocol, and as attributes."""

    @property
    def model_extra(self) -> dict[str, Any]:
        """The members."""
        return dict(self)

    @property
    def progress_token(self) -> Any:
        """The token for the progress of the request; None if the client wants none."""
        return self.get("progressToken")

    def __getattr__(self, name: str) -> Any:
        """Return a member; None for ``progressToken`` if the client wants no progress."""
        if name in self:
            return self[name]
        if name == "progressToken":
            return None
        raise AttributeError(f"The request's _meta has no member {name!r}.")
