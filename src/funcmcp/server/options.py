"""What a server says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server's Implementation and its instructions.

    Attributes:
        name: the program's name.
        version: the program's own version.
        title: a name for people.
        description: what the server is for.
        icons: Icon objects as the specification has them.
        website_url: where to read more.
        instructions: guidance for the model on how to use the server.
    """

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    icons: Sequence[dict[str, Any]] = ()
    website_url: str | None = None
    instructions: str | None = None

    def implementation(self) -> dict[str, Any]:
        """Return the Implementation in the newest revision's shape."""
        members = {
            "name": self.name,
            "version": self.version,
            "title": self.title,
            "description": self.description,
            "icons": list(self.icons) or None,
            "websiteUrl": self.website_url,
        }
        return {name: value for name, value in members.items() if value is not None}
