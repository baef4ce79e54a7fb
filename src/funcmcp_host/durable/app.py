"""`DurableApp`: the Durable Functions of a served app, their endpoint, and the value of durable client bindings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from funcmcp._server.limits import LimitReachedError
from funcmcp._transports.http.admission.body import answer_body
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import limit_reached
from funcmcp_host.blobs import BlobError
from funcmcp_host.durable.hub import DurableHub
from funcmcp_host.durable.management import PATH, Management
from funcmcp_host.expressions import ExpressionError, with_settings
from funcmcp_host.workers.worker import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp_host.bindings import Function
    from funcmcp_host.durable.listener import Listener
    from funcmcp_host.extras import Storage
    from funcmcp_host.folder import Folder
    from funcmcp_host.invocation import Trigger
    from funcmcp_host.workers.worker import LanguageWorker

_RUNTIMES = frozenset({"node", "powershell", "python"})
"""The languages whose libraries of Durable Functions reach the host over HTTP."""

_OTHER_LANGUAGE = (
    "Durable Functions of this language reach the Functions host over gRPC, which funcmcp host does not support. "
    "Python, Node and PowerShell are served."
)
_DEFAULT_NAME = "TestHubName"


class DurableApp:
    """The Durable Functions of an app.

    Args:
        worker: Runs the functions.
        folder: The app's folder.
        storage: The folder in which instances and entities are stored.
        origin: The scheme and authority under which clients reach the app.
        key: The key with which clients manage orchestrations; empty without one.
        seconds: The time that a call may take; None for any time.

    Attributes:
        fault: Why the app's Durable Functions can't run; None if they can.
    """

    def __init__(
        self, worker: LanguageWorker, folder: Folder, storage: Path, *, origin: str, key: str, seconds: float | None
    ) -> None:
        self.fault: str | None = None if folder.runtime in _RUNTIMES else _OTHER_LANGUAGE
        name = _DEFAULT_NAME
        try:
            name = with_settings(folder.options.hub_name, folder.settings) or name
        except ExpressionError as error:
            self.fault = f"extensions.durableTask.hubName of host.json: {error}"
        if not name.replace("-", "").isalnum():
            self.fault = f"host.json: the hubName {name!r} of durableTask must have letters and digits only."
        self._hub = DurableHub(worker, storage / "durable" / f"{name}.sqlite", seconds=seconds)
        self._management = Management(self._hub, hub_name=name, origin=origin, key=key)
        self._listener: Listener | None = None

    @property
    def count(self) -> int:
        """The number of orchestrators, activities and entities."""
        return self._hub.count

    def use_seconds(self, seconds: float | None) -> None:
        """Change the time that a call may take."""
        self._hub.seconds = seconds

    def update(self, functions: Sequence[Function], storage: Storage) -> dict[str, str]:
        """Run these functions and no others; return why some can't run, by their names."""
        if self.fault is not None:
            return {function.name: self.fault for function in functions}
        left_out = self._hub.update(functions, storage)
        if self._hub.count:
            self._hub.resume()
        return left_out

    async def read(self, _trigger: Trigger) -> Value:
        """Return the value of a durable client binding; raise BlobError if there is none."""
        if self._listener is None:
            from funcmcp_host.durable.listener import Listener  # noqa: PLC0415 - few apps need it

            listener = self._listener = Listener(self._management.answer)
            try:
                await listener.start()
            except OSError as error:
                self._listener = None
                raise BlobError(f"Durable Functions can't listen on 127.0.0.1: {error.strerror}.") from error
        return Value("string", self._management.binding(self._listener.url))

    async def answer(self, request: HttpRequest, server: Server) -> HttpResponse:
        """Answer a request that manages orchestrations, and whose caller may do so."""

        async def answer(body: bytes) -> HttpResponse:
            path = request.path[len(PATH) :]
            reply = self._management.answer(request.method, path, request.query_string, body)
            headers = (
                () if reply.location is None else (("location", reply.location), ("retry-after", str(reply.delay)))
            )
            content = json.dumps(reply.content).encode()
            return HttpResponse(reply.status, headers, content)

        try:
            return await answer_body(request, server.options.limits, server.load, answer)
        except LimitReachedError as error:
            return limit_reached(error)

    async def aclose(self) -> None:
        """Stop; orchestrations go on at the next start."""
        if self._listener is not None:
            await self._listener.aclose()
        await self._hub.aclose()
