"""What an operator may choose about HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class HTTPOptions:
    """Options of Streamable HTTP.

    Attributes:
        allowed_hosts: names, with or without a port, that the Host header may have beside the loopback names
            of a server on a loopback address. ``"*"`` allows every one; an empty list none more.
        allowed_origins: origins such as ``"https://app.example.com"`` that browsers may call from beside the
            server's own and loopback ones. ``"*"`` allows every one; an empty list none more.
        require_origin: refuse requests without an Origin header, which programs do not send.
        max_body: the largest body in bytes; a larger one is answered 413.
    """

    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    require_origin: bool = False
    max_body: int = 4 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("allowed_hosts", "allowed_origins"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"HTTPOptions.{name} is a list of strings, not one string.")
