"""Sign-ins and state in Azure Storage, which all instances of a function app share.

How it works: a record is a blob. The time at which it expires is in its metadata. A blob is changed only if it still
has the version (ETag) that was read. Each process removes expired blobs once an hour, beside its requests.

Needs ``pip install "funcmcp[azure-tasks]"``. While the storage can't be reached, every method raises
StoreUnavailableError in a bounded time.
"""

from __future__ import annotations

import asyncio
import re
from time import monotonic, time
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.storage import Storage, check_packages
from funcmcp._objects.public_names import public
from funcmcp._state.key_values import SIGN_INS, STATE
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._state.key_values import Purpose

_CONTAINER = re.compile(r"(?=.{3,63}\Z)(?!.*--)[a-z0-9][a-z0-9-]*[a-z0-9]")
_EXPIRES = "expires"
_MAX_CONFLICTS = 5
_SWEEP_INTERVAL = 3600.0


class AzureKeyValues:
    """Values of all instances that share a storage account.

    Args:
        connection: The app setting with the connection string of the storage account, or the beginning of the names of
            settings such as ``<connection>__blobServiceUri``, as in the bindings of a function app.
        container: The name of the container. It is created if it does not exist.
        clock: Returns seconds since 1970.

    Raises:
        ModuleNotFoundError: A package of the extra is missing.
        ValueError: The name of the container is not valid.
    """

    shared: bool = True
    _purpose: Purpose

    def __init__(self, connection: str, *, container: str, clock: Callable[[], float]) -> None:
        check_packages(type(self).__name__)
        if not _CONTAINER.fullmatch(container):
            raise ValueError(
                "container must have 3 to 63 lower-case letters, digits and single hyphens between them; "
                f"got {container!r}."
            )
        self._storage = Storage(connection, container, store=self._purpose.store)
        self._clock = clock
        self._sweep_at = monotonic() + _SWEEP_INTERVAL
        self._sweeping: asyncio.Task[None] | None = None

    async def get(self, key: str) -> str | None:
        """See `StateStore.get`."""
        blob = await self._storage.read(key)
        return None if blob is None or self._has_expired(blob.metadata) else blob.content.decode("ascii")

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `StateStore.take`."""
        self._begin_sweep()
        content, metadata = value.encode("ascii"), self._metadata(seconds)
        for _ in range(_MAX_CONFLICTS):
            if await self._storage.create(key, content, metadata):
                return True
            blob = await self._storage.read(key)
            if blob is None:
                continue  # it has just been removed
            if blob.content == content:  # the reply to an earlier attempt was lost
                return True
            if not self._has_expired(blob.metadata):
                return False
            if await self._storage.replace(key, content, metadata, blob.version):
                return True
        raise StoreUnavailableError(store=self._purpose.store)

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `StateStore.replace`."""
        blob = await self._storage.read(key)
        if blob is None or self._has_expired(blob.metadata):
            return False
        if blob.content == old.encode("ascii"):
            content, metadata = new.encode("ascii"), self._metadata(seconds)
            if await self._storage.replace(key, content, metadata, blob.version):
                return True
            blob = await self._storage.read(key)
        return blob is not None and blob.content == new.encode("ascii")

    async def remove(self, key: str) -> None:
        """See `StateStore.remove`."""
        await self._storage.delete(key)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._storage.aclose()

    def _metadata(self, seconds: float) -> dict[str, str]:
        return {_EXPIRES: f"{self._clock() + seconds:.3f}"}

    def _has_expired(self, metadata: Mapping[str, str]) -> bool:
        return self._clock() >= float(metadata.get(_EXPIRES, "0"))

    def _begin_sweep(self) -> None:
        now = monotonic()
        if now >= self._sweep_at:
            self._sweep_at = now + _SWEEP_INTERVAL
            self._sweeping = asyncio.create_task(self.remove_expired(), name="funcmcp expired blobs")

    async def remove_expired(self) -> None:
        """Remove the blobs that have expired. It ends early while the storage can't be reached."""
        try:
            for name, metadata in await self._storage.blobs(""):
                if self._has_expired(metadata):
                    await self._storage.delete(name)
        except StoreUnavailableError:
            return  # the next time is in an hour


@public("funcmcp.azure")
class AzureSignIns(AzureKeyValues):
    """Sign-ins of all instances that share a storage account.

    Args:
        connection: The app setting with the connection string of the storage account, or the beginning of the names of
            settings such as ``<connection>__blobServiceUri``, as in the bindings of a function app.
        container: The name of the container. It is created if it does not exist.
        clock: Returns seconds since 1970.

    Raises:
        ModuleNotFoundError: A package of the extra is missing.
        ValueError: The name of the container is not valid.
    """

    _purpose = SIGN_INS

    def __init__(
        self,
        connection: str = "AzureWebJobsStorage",
        *,
        container: str = SIGN_INS.container,
        clock: Callable[[], float] = time,
    ) -> None:
        super().__init__(connection, container=container, clock=clock)


@public("funcmcp.azure")
class AzureState(AzureKeyValues):
    """The state of callers, for all instances that share a storage account.

    Args:
        connection: The app setting with the connection string of the storage account, or the beginning of the names of
            settings such as ``<connection>__blobServiceUri``, as in the bindings of a function app.
        container: The name of the container. It is created if it does not exist.
        clock: Returns seconds since 1970.

    Raises:
        ModuleNotFoundError: A package of the extra is missing.
        ValueError: The name of the container is not valid.
    """

    _purpose = STATE

    def __init__(
        self,
        connection: str = "AzureWebJobsStorage",
        *,
        container: str = STATE.container,
        clock: Callable[[], float] = time,
    ) -> None:
        super().__init__(connection, container=container, clock=clock)
