"""What tools, resources, resource templates and prompts have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY  # noqa: TC003 - read at run time
from typing import Any, NamedTuple, TypeAlias

from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._objects.definitions import definition


class TimeLimit(NamedTuple):
    """The time that a call may take.

    Attributes:
        seconds: The seconds.
        option: The option that sets them, for errors and the log.
        longest: The seconds to which `Context.extend` may raise them; None if it may not.
        error: The text of the error of a call that takes longer; None for the usual one.
    """

    seconds: float
    option: str = "timeout="
    longest: float | None = None
    error: str | None = None


class CallEnd(NamedTuple):
    """When the time of a call is up.

    Attributes:
        time: The time, in the clock of the event loop.
        limit: The time limit that leads to it.
    """

    time: float
    limit: TimeLimit


DEFAULT_TIME_LIMIT = TimeLimit(600.0, "the default of timeout=")
"""The time limit of a call whose author has not set one.

It is longer than the time that clients wait by default (60 to 300 seconds), so that no call ends while its client still
waits. It is finite, because a call that hangs takes one of the places for requests until it ends."""


Capability: TypeAlias = tuple[str, ...]
"""A capability of a client, as its place in ClientCapabilities: ``("elicitation", "url")``."""


ShownIf: TypeAlias = Callable[[Any, Any], Awaitable[bool]]
"""An async function from a feature and a `RequestContext` to whether the caller has the feature."""


FailureStart: TypeAlias = Callable[[BaseException, Any], str | None]
"""A function from an exception and a `RequestContext` to how its text for the client begins."""


class UpstreamSource(NamedTuple):
    """Where a feature comes from that another server has.

    Attributes:
        upstream: The other server, a `funcmcp.upstreams.Upstream`.
        key: The name, the URI or the text of the template at the other server.
    """

    upstream: Any
    key: str


class MountSource(NamedTuple):
    """Where a feature of a mounted server comes from.

    Attributes:
        lists: What sends lists through the middleware of the mounted server.
        feature: The feature of the mounted server.
    """

    lists: Any
    feature: Any


@definition
class Feature:
    """One tool, resource, resource template or prompt.

    Attributes:
        interactive: Whether the handler may report progress, send log messages or ask the client questions, so that
            the transport must be ready to stream.
        time_limit: The time after which a call is cancelled; None for no limit.
        access: Who may use the feature.
        shown_errors: Types of exceptions whose text clients get; None for those of the server.
        tags: Words by which `MCPServer.enable` and `disable` find it.
        enabled: Whether clients see it as long as no rule of `enable` or `disable` applies.
        version: Its version, if there are several features with its key. Clients get the newest one unless they name
            another.
        is_built_in: Whether the server itself adds it. Rules of `enable` and `disable` do not hide it, and servers that
            mount this one do not have it.
        is_listed: Whether lists have it. Other features are used by clients that know them from elsewhere, such as
            the files of a skill.
        needs: Capabilities of the client. Clients without one of them do not have the feature.
        shown_if: Gets the feature and the `RequestContext` of each request, and returns whether its caller has the
            feature; to other callers it does not exist. None for a feature that all callers have.
        upstream: Where the feature comes from, if it is one of another server; None for features of this process.
        mounted: The names of the mounted servers that it comes through, the outermost first.
        failure_start: Gets an exception that the author has not anticipated and the request, and returns how the text
            for the client begins; None for a text that is that of the exception alone.
        mount: Where it comes from, if it is one of a mounted server whose middleware lists pass.
        position: The place of its provider among the providers and mounts of the server, and its own place in the list
            of the provider; before them the place of the mount, if the server is mounted. Empty for a feature without a
            provider. Lists are in this order.
    """

    _: KW_ONLY
    interactive: bool = False
    time_limit: TimeLimit | None = DEFAULT_TIME_LIMIT
    access: Access = PRINCIPALS_ONLY
    shown_errors: tuple[type[BaseException], ...] | None = None
    tags: frozenset[str] = frozenset()
    enabled: bool = True
    version: str | None = None
    is_built_in: bool = False
    is_listed: bool = True
    needs: frozenset[Capability] = frozenset()
    shown_if: ShownIf | None = None
    upstream: UpstreamSource | None = None
    mounted: tuple[str, ...] = ()
    failure_start: FailureStart | None = None
    mount: MountSource | None = None
    position: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """The name or URI, unique among the features of its kind."""
        raise NotImplementedError
