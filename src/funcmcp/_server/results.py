"""Results as each revision has them: what the server adds to the result of a handler.

In the handshake era nothing is added. In the per-request era (2026-07-28) each result has a ``resultType`` and the
server's Implementation in ``_meta``, and lists and resources say how long clients may cache them. These parts hardly
ever change, so they are encoded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp._protocol import adaptation, envelope
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.features import JSONResult, RawResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.catalog.features import EncodedResult
    from funcmcp._server.options import ServerOptions

    CacheScope: TypeAlias = Literal["public", "private"]


class Results:
    """Completes the results of one server.

    Args:
        options: The server's Implementation, and how long clients may cache lists and resources.
        revisions: The revisions that the server speaks.
        cache_scope: Whether caches may share an answer that does not depend on its caller.

    Attributes:
        instructions: Instructions for the model; None without.
        server_info: The Implementation of the server, in the newest revision's shape.
    """

    def __init__(self, options: ServerOptions, revisions: Sequence[Revision], *, cache_scope: CacheScope) -> None:
        self.cache_scope = cache_scope
        self.list_ttl = _milliseconds(options.protocol.list_ttl)
        self.read_ttl = _milliseconds(options.protocol.read_ttl)
        self.instructions = options.instructions
        self._revisions = revisions
        self.describe_as(options.implementation())

    def describe_as(self, implementation: dict[str, Any]) -> None:
        """Send another Implementation from now on: that of the server whose features are passed on."""
        self.server_info = implementation
        self._meta = {envelope.SERVER_INFO: implementation}
        self._end = b"," + encode({"_meta": self._meta})[1:]
        self._end_of_read = b"," + encode({**self._caching(self.read_ttl, "private"), "_meta": self._meta})[1:]
        self._tool_frames = {revision.date: self._tool_frames_of(revision) for revision in self._revisions}

    def complete(self, result: dict[str, Any], revision: Revision) -> dict[str, Any]:
        """Return a result with the members that every result of its revision has."""
        if not revision.per_request:
            return result
        meta = result.get("_meta")
        return {
            "resultType": "complete",
            **result,
            "_meta": {**meta, **self._meta} if meta else self._meta,
        }

    def tool(
        self, result: dict[str, Any] | JSONResult | RawResponse, revision: Revision
    ) -> dict[str, Any] | bytes | RawResponse:
        """Return the result of a tool as a revision has it; encoded if its parts are."""
        if not isinstance(result, JSONResult):
            return result if isinstance(result, RawResponse) else adaptation.tool_result(result, revision)
        text_only, with_structured_content = self._tool_frames[revision.date]
        if result.structured is None or with_structured_content is None:
            return text_only % result.text
        return with_structured_content % (result.text, result.structured)

    def prompt(self, result: EncodedResult, revision: Revision) -> bytes:
        """Return the messages of a prompt, encoded."""
        return _completed(result.text, self._end) if revision.per_request else result.text

    def read(self, result: EncodedResult, revision: Revision) -> bytes:
        """Return the contents of a resource, encoded."""
        return _completed(result.text, self._end_of_read) if revision.per_request else result.text

    def cacheable(
        self, result: dict[str, Any], revision: Revision, ttl: int, scope: CacheScope | None = None
    ) -> dict[str, Any]:
        """Return a result that clients may cache for so many milliseconds."""
        return {**result, **self._caching(ttl, scope or self.cache_scope)} if revision.per_request else result

    def list(
        self,
        name: str,
        definitions: Iterable[bytes],
        next_cursor: str | None,
        revision: Revision,
        scope: CacheScope | None = None,
        ttl: int | None = None,
    ) -> bytes:
        """Return a page of a list, encoded.

        Args:
            name: The member of the result that has the definitions, such as "tools".
            definitions: The definitions, as JSON text.
            next_cursor: The cursor of the next page; None on the last one.
            revision: The revision of the answer.
            scope: Whether caches may share the page; by default as the server's other answers.
            ttl: Milliseconds for which clients may cache the page, if they are fewer than those of the server.
        """
        lowest = self.list_ttl if ttl is None else min(self.list_ttl, ttl)
        return self._page(name, definitions, next_cursor, revision, self.cacheable({}, revision, lowest, scope))

    def page(self, name: str, definitions: Iterable[bytes], next_cursor: str | None, revision: Revision) -> bytes:
        """Do as `list`, for a page that clients must not cache."""
        return self._page(name, definitions, next_cursor, revision, {})

    def _page(
        self,
        name: str,
        definitions: Iterable[bytes],
        next_cursor: str | None,
        revision: Revision,
        members: dict[str, Any],
    ) -> bytes:
        if next_cursor is not None:
            members = {"nextCursor": next_cursor, **members}
        members = self.complete(members, revision)
        end = b"," + encode(members)[1:] if members else b"}"
        return b'{"%b":[%b]%b' % (name.encode(), b",".join(definitions), end)

    def implementation(self, revision: Revision) -> dict[str, Any]:
        """Return the server's Implementation with the members that a revision has."""
        return adaptation.implementation(self.server_info, revision)

    def _caching(self, ttl: int, scope: CacheScope) -> dict[str, Any]:
        return {"ttlMs": ttl, "cacheScope": scope}

    def _tool_frames_of(self, revision: Revision) -> tuple[bytes, bytes | None]:
        """Return the result of a tool with places for a text, and with places for a text and structured content."""
        begin = b'{"content":[{"type":"text","text":%b}]'
        end = b"}"
        if revision.per_request:
            begin = b'{"resultType":"complete",' + begin[1:]
            end = self._end.replace(b"%", b"%%")
        if revision.structured_content is None:
            return begin + end, None
        return begin + end, begin + b',"structuredContent":%b' + end


def _completed(members: bytes, end: bytes) -> bytes:
    """Return the result of the per-request era.

    Args:
        members: The result's own members, at least one, as a JSON object.
        end: The JSON text that follows them, from the comma to the closing brace.
    """
    return b'{"resultType":"complete",%b%b' % (members[1:-1], end)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
