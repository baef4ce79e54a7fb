"""Requests as clients of the Functions host send them."""

from __future__ import annotations

from funcmcp.testing import MemoryRequest


class HostRequest(MemoryRequest):
    """A request to the Functions host.

    Args:
        method: The HTTP method, in upper case.
        path: The path as it is sent.
        query: The query.
        body: The body.
        headers: Header fields, with names in lower case.
    """

    def __init__(self, method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> None:
        pairs = {"host": "localhost:7071", **headers}
        fields = [(name.encode(), value.encode()) for name, value in pairs.items()]
        super().__init__(method, path, fields, body)
        self._query_string = query

    @property
    def raw_path(self) -> str:
        """The path as it was sent."""
        return self.path

    @property
    def query_string(self) -> str:
        """The query."""
        return self._query_string
