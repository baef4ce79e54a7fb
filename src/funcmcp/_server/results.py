"""Results as each revision has them: what the server adds to the result of a handler.

The table of revisions names the members. In the handshake era nothing is added. In the per-request era each result has
a ``resultType`` and the server's Implementation in ``_meta``, and lists and resources say how long clients may cache
them. These parts hardly ever change, so they are encoded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from funcmcp._protocol import adaptation, envelope
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.features import JSONResult, RawResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
        shares_contents = cache_scope == "public" and options.protocol.share_caches is True
        self._read_scope: CacheScope = "public" if shares_contents else "private"
        self.instructions = options.instructions
        self._revisions = revisions
        self.describe_as(options.implementation())

    def describe_as(self, implementation: dict[str, Any]) -> None:
        """Send another Implementation from now on: that of the server whose features are passed on."""
        self.server_info = implementation
        self._meta = {envelope.SERVER_INFO: implementation}
        self._frames = {revision.date: self._frames_of(revision) for revision in self._revisions}

    def complete(self, result: dict[str, Any], revision: Revision) -> dict[str, Any]:
        """Return a result with the members that every result of its revision has."""
        if not revision.per_request:
            return result
        meta = result.get("_meta")
        return {
            **revision.result_members,
            **result,
            "_meta": {**meta, **self._meta} if meta else self._meta,
        }

    def tool(
        self, result: dict[str, Any] | JSONResult | RawResponse, revision: Revision
    ) -> dict[str, Any] | bytes | RawResponse:
        """Return the result of a tool as a revision has it; encoded if its parts are."""
        if not isinstance(result, JSONResult):
            return result if isinstance(result, RawResponse) else adaptation.tool_result(result, revision)
        frames = self._frames[revision.date]
        if result.structured is None or frames.structured_tool is None:
            return frames.tool % result.text
        return frames.structured_tool % (result.text, result.structured)

    def prompt(self, result: EncodedResult, revision: Revision) -> bytes:
        """Return the messages of a prompt, encoded."""
        frame = self._frames[revision.date].prompt
        return result.text if frame is None else frame % result.text[1:-1]

    def read(self, result: EncodedResult, revision: Revision) -> bytes:
        """Return the contents of a resource, encoded."""
        frame = self._frames[revision.date].read
        return result.text if frame is None else frame % result.text[1:-1]

    def cacheable(
        self, result: dict[str, Any], revision: Revision, ttl: int, scope: CacheScope | None = None
    ) -> dict[str, Any]:
        """Return a result that clients may cache for so many milliseconds."""
        return {**result, **_caching(revision, ttl, scope or self.cache_scope)} if revision.cache_members else result

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

    def _frames_of(self, revision: Revision) -> _Frames:
        """Return what a revision has around the encoded members of results."""
        text, structured = b'"content":[{"type":"text","text":%b}]', b',"structuredContent":%b'
        frames = _Frames(tool=self._frame(text, {}, revision))
        if revision.structured_content is not None:
            frames = frames._replace(structured_tool=self._frame(text + structured, {}, revision))
        if revision.per_request:
            cached = _caching(revision, self.read_ttl, self._read_scope)
            frames = frames._replace(prompt=self._frame(b"%b", {}, revision), read=self._frame(b"%b", cached, revision))
        return frames

    def _frame(self, members: bytes, added: Mapping[str, object], revision: Revision) -> bytes:
        """Return a template of a result.

        Args:
            members: The result's own members, at least one, as the inner part of a JSON object, with places for texts.
            added: Members that follow them.
            revision: The revision.
        """
        last = {**added, "_meta": self._meta} if revision.per_request else added
        first, end = (encode({**part})[1:-1].replace(b"%", b"%%") for part in (revision.result_members, last))
        return b"{%b}" % b",".join(part for part in (first, members, end) if part)


class _Frames(NamedTuple):
    """Templates of results, in which the texts that a feature returns are inserted with ``%``.

    Attributes:
        tool: For the text of a tool.
        structured_tool: For a tool's text and structured content. None: the revision has none.
        prompt: For the members of a prompt's result. None: the revision adds none.
        read: The same for the contents of a resource.
    """

    tool: bytes
    structured_tool: bytes | None = None
    prompt: bytes | None = None
    read: bytes | None = None


CACHE_MEMBERS: dict[str, Callable[[int, CacheScope], object]] = {
    "ttlMs": lambda ttl, _: ttl,
    "cacheScope": lambda _, scope: scope,
}
"""The values of `Revision.cache_members`, for the milliseconds and for those who may cache the result."""


def _caching(revision: Revision, ttl: int, scope: CacheScope) -> dict[str, object]:
    return {name: CACHE_MEMBERS[name](ttl, scope) for name in revision.cache_members}


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
