"""A request for an upstream, as it is sent over a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import MCPError, MissingClientCapability
from funcmcp._server.calls.rounds import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._upstreams.connection import Link
    from funcmcp._upstreams.running import RunningRequest


class UpstreamRequest(NamedTuple):
    """A request for an upstream.

    Attributes:
        link: The connection.
        method: The method.
        params: The params.
        mirrored: Arguments of a tool that are repeated in headers. None: those in the upstream's list.
        envelope: Members of `_meta` in which an upstream of 2026-07-28 sees the client.
        has_task: Whether an upstream of 2025-11-25 can run the call as a task.
    """

    link: Link
    method: str
    params: Mapping[str, Any]
    mirrored: tuple[MirroredParameter, ...] | None = None
    envelope: Mapping[str, Any] | None = None
    has_task: bool = False

    def with_members(self, **members: Any) -> UpstreamRequest:
        """Return the request with other members of its params."""
        return self._replace(params={**self.params, **members})

    @property
    def slot(self) -> str:
        """The key under which the request keeps values between rounds."""
        return digest([self.link.name, self.method, without(self.params, "_meta", "inputResponses", "requestState")])

    async def send_plain(self) -> dict[str, Any]:
        """Return the result of a request that is not one of a client."""
        return await self.link.request(self.method, self.params, envelope=self.envelope)

    async def send(self, running: RunningRequest) -> dict[str, Any]:
        """Return the result, after the client has got all that the upstream has sent before it.

        Raises:
            MissingClientCapability: The upstream has failed after it asked what a client of 2026-07-28 can't answer.
        """
        is_failure = True
        requests = self.link.running
        outer = requests.begin(running)
        try:
            result = await self.link.request(self.method, self.params, envelope=self.envelope, mirrored=self.mirrored)
            if running.has_queue:
                await running.flush()
            is_failure = result.get("isError") is True
        except MCPError:
            if not running.missing:
                raise
        finally:
            requests.end(running, outer)
            running.close()
        if is_failure and running.missing:
            raise MissingClientCapability(running.missing)
        return result
