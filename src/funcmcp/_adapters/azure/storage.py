"""A connection to Azure Storage: every step has a time limit, and every failure is a StoreUnavailableError.

How it works: the connection has the name of an app setting, as the bindings of a function app have it. Either the
setting itself has a connection string, or settings with this name as their beginning have the URLs of the services, and
the app signs in with its identity (`StorageSettings`). The clients belong to an event loop and are made with the first
step, because the libraries take a while to import. A container or queue that does not exist is created when a step
needs it. A failure and the return of the storage are logged once.

Needs ``pip install "funcmcp[azure-tasks]"``.

Source: "Azure Functions developer guide, Connections" (the settings); azure-storage-blob 12.31, azure-storage-queue
12.18.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from funcmcp._server.log import quote
from funcmcp._state.outage import Outage
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from azure.storage.blob.aio import ContainerClient
    from azure.storage.queue.aio import QueueClient

T = TypeVar("T")

_PAGE_SIZE = 5000
"""Blobs in a page of a list. The time limit is for a page, so that a storage that does not answer fails soon."""

_RETRIES = 2
_PACKAGES = {
    "azure.storage.blob": "azure-storage-blob",
    "azure.storage.queue": "azure-storage-queue",
    "aiohttp": "aiohttp",
}

_silent = logging.getLogger("funcmcp.azure_storage")
"""Gets the requests that the libraries log, at level INFO: their URLs contain the names of blobs."""
_silent.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """The storage account that app settings name.

    Attributes:
        connection_string: The connection string; empty if the app signs in with its identity.
        blobs: The URL of the blob service, for an identity.
        queues: The URL of the queue service, for an identity.
        managed: Whether the identity is a managed one. Otherwise azure-identity looks for an identity.
        client_id: The id of a user-assigned managed identity; None for the system-assigned one.
    """

    connection_string: str = ""
    blobs: str = ""
    queues: str = ""
    managed: bool = False
    client_id: str | None = None


def storage_settings(connection: str, environment: Mapping[str, str] = os.environ) -> StorageSettings:
    """Return the storage account of a connection.

    Args:
        connection: The name of the app setting, or the beginning of the names of several.
        environment: The app settings.

    Raises:
        ValueError: The settings are missing.
    """
    text = environment.get(connection, "")
    if text:
        return StorageSettings(connection_string=text)
    account = environment.get(f"{connection}__accountName", "")
    blobs = environment.get(f"{connection}__blobServiceUri", "")
    queues = environment.get(f"{connection}__queueServiceUri", "")
    if account:
        blobs = blobs or f"https://{account}.blob.core.windows.net"
        queues = queues or f"https://{account}.queue.core.windows.net"
    if not blobs or not queues:
        raise ValueError(
            f"There is no storage account. Set {connection} to a connection string, or set "
            f"{connection}__blobServiceUri and {connection}__queueServiceUri for an identity."
        )
    return StorageSettings(
        blobs=blobs,
        queues=queues,
        managed=environment.get(f"{connection}__credential", "").lower() == "managedidentity",
        client_id=environment.get(f"{connection}__clientId") or None,
    )


def check_packages(user: str = "AzureTasks") -> None:
    """Raise ModuleNotFoundError if a package of the extra is missing. This imports nothing large."""
    for module, package in _PACKAGES.items():
        try:
            is_missing = find_spec(module) is None
        except ModuleNotFoundError:  # no package of the namespace is installed
            is_missing = True
        if is_missing:
            raise ModuleNotFoundError(f'{user} needs {package}: pip install "funcmcp[azure-tasks]"', name=module)


def _code_of(error: Exception) -> str:
    """Return the code in an error response of the storage, such as "BlobNotFound"; empty if there is none."""
    code = getattr(error, "error_code", None) or ""
    return str(getattr(code, "value", code))


class Clients:
    """The clients of a container and of queues.

    Attributes:
        container: The container.
    """

    def __init__(self, settings: StorageSettings, container: str) -> None:
        from azure.storage.blob.aio import ContainerClient, LinearRetry  # noqa: PLC0415 - slow to import

        self._settings = settings
        self._queues: dict[str, QueueClient] = {}
        self._options: dict[str, Any] = {
            "retry_policy": LinearRetry(backoff=1, retry_total=_RETRIES, random_jitter_range=0),
            "logger": _silent,
        }
        self._credential: Any = None
        if settings.connection_string:
            text = settings.connection_string
            self.container: ContainerClient = ContainerClient.from_connection_string(text, container, **self._options)
        else:
            self._credential = _credential(settings)
            self.container = ContainerClient(settings.blobs, container, credential=self._credential, **self._options)

    def queue(self, name: str) -> QueueClient:
        """Return the client of a queue."""
        from azure.storage.queue.aio import QueueClient  # noqa: PLC0415 - slow to import

        client = self._queues.get(name)
        if client is None and self._settings.connection_string:
            client = QueueClient.from_connection_string(self._settings.connection_string, name, **self._options)
        elif client is None:
            client = QueueClient(self._settings.queues, name, credential=self._credential, **self._options)
        self._queues[name] = client
        return client

    async def aclose(self) -> None:
        """Close the connections."""
        await self.container.close()
        for queue in self._queues.values():
            await queue.close()
        if self._credential is not None:
            await self._credential.close()


def _credential(settings: StorageSettings) -> Any:
    try:
        from azure.identity.aio import DefaultAzureCredential, ManagedIdentityCredential  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "AzureTasks needs azure-identity for a connection without a connection string: pip install azure-identity",
            name=error.name,
        ) from None
    if settings.managed:
        return ManagedIdentityCredential(client_id=settings.client_id)
    return DefaultAzureCredential()


class Blob(NamedTuple):
    """A blob as it was read.

    Attributes:
        content: All of it.
        version: The ETag, which each write changes.
        metadata: Texts by name.
    """

    content: bytes
    version: str
    metadata: Mapping[str, str]


class Message(NamedTuple):
    """A message that was received.

    Attributes:
        queue: The name of its queue.
        content: The text.
        deliveries: How often it was received, this time included.
        receipt: What `Storage.delete_message` needs.
    """

    queue: str
    content: bytes
    deliveries: int
    receipt: Any


class Storage:
    """A container and the queues of a storage account. Each method raises StoreUnavailableError.

    Args:
        connection: See `storage_settings`.
        container: The name of the container.
        timeout: Seconds that one step may take, retries included.
        store: The name of the store in errors.
    """

    def __init__(self, connection: str, container: str, *, timeout: float = 10.0, store: str = "task store") -> None:
        self._connection = connection
        self._store = store
        self._timeout = timeout
        self._container = container
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Clients] = WeakKeyDictionary()
        self._outage = Outage()

    async def create(self, name: str, content: bytes, metadata: Mapping[str, str]) -> bool:
        """Write a blob that does not exist; return False if it exists.

        It may exist because the response to the write was lost, and the library sent the write again.
        """

        async def upload(clients: Clients) -> bool:
            from azure.core.exceptions import ResourceExistsError  # noqa: PLC0415 - slow to import

            try:
                await clients.container.upload_blob(name, content, metadata=dict(metadata))
            except ResourceExistsError as error:
                if _code_of(error) != "BlobAlreadyExists":
                    raise
                return False
            return True

        return await self._do(upload)

    async def write(self, name: str, content: bytes) -> None:
        """Write a blob, whether it exists or not."""

        async def upload(clients: Clients) -> None:
            await clients.container.upload_blob(name, content, overwrite=True)

        await self._do(upload)

    async def replace(self, name: str, content: bytes, metadata: Mapping[str, str], version: str) -> bool:
        """Replace a blob; return False if it does not have this version any more."""

        async def upload(clients: Clients) -> bool:
            from azure.core import MatchConditions  # noqa: PLC0415 - slow to import
            from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError  # noqa: PLC0415

            try:
                await clients.container.upload_blob(
                    name,
                    content,
                    overwrite=True,
                    metadata=dict(metadata),
                    etag=version,
                    match_condition=MatchConditions.IfNotModified,
                )
            except ResourceModifiedError:
                return False
            except ResourceNotFoundError as error:
                if _code_of(error) != "BlobNotFound":
                    raise
                return False
            return True

        return await self._do(upload)

    async def read(self, name: str) -> Blob | None:
        """Return a blob; None if it does not exist."""

        async def download(clients: Clients) -> Blob | None:
            from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

            try:
                blob = await clients.container.download_blob(name)
            except ResourceNotFoundError as error:
                if _code_of(error) != "BlobNotFound":
                    raise
                return None
            properties = blob.properties
            return Blob(await blob.readall(), properties.etag, properties.metadata or {})

        return await self._do(download)

    async def blobs(self, beginning: str) -> list[tuple[str, Mapping[str, str]]]:
        """Return names and metadata of the blobs whose names begin with a text."""
        blobs, token = await self._page(beginning, None)
        while token:
            page, token = await self._page(beginning, token)
            blobs += page
        return blobs

    async def _page(self, beginning: str, token: str | None) -> tuple[list[tuple[str, Mapping[str, str]]], str | None]:
        """Return one page of a list of blobs, and the token of the next page, if there is one."""

        async def listed(clients: Clients) -> tuple[list[tuple[str, Mapping[str, str]]], str | None]:
            listing = clients.container.list_blobs(
                name_starts_with=beginning, include=["metadata"], results_per_page=_PAGE_SIZE
            )
            pages: Any = listing.by_page(token)
            page = await anext(pages)
            blobs = [(blob.name, blob.metadata or {}) async for blob in page]
            return blobs, pages.continuation_token

        return await self._do(listed)

    async def delete(self, name: str) -> None:
        """Delete a blob, if it exists."""

        async def delete(clients: Clients) -> None:
            from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

            try:
                await clients.container.delete_blob(name)
            except ResourceNotFoundError as error:
                if _code_of(error) != "BlobNotFound":
                    raise

        await self._do(delete)

    async def send(self, queue: str, text: str, hidden: int) -> None:
        """Send a message that does not expire, and that is hidden for some seconds."""
        encoded = base64.b64encode(text.encode()).decode()  # as the functions host expects it by default

        async def send(clients: Clients) -> None:
            await clients.queue(queue).send_message(encoded, visibility_timeout=hidden, time_to_live=-1)

        await self._do(send, queue=queue)

    async def receive(self, queue: str, count: int, hidden: int) -> list[Message]:
        """Return messages, which are hidden from other receivers for some seconds."""

        async def receive(clients: Clients) -> list[Message]:
            pages = clients.queue(queue).receive_messages(
                messages_per_page=count, max_messages=count, visibility_timeout=hidden
            )
            return [
                Message(queue, str(message.content).encode(), message.dequeue_count or 1, message)
                async for message in pages
            ]

        return await self._do(receive, queue=queue)

    async def peek(self, queue: str, count: int) -> list[bytes]:
        """Return the texts of the first messages that are not hidden, without receiving them."""

        async def peek(clients: Clients) -> list[bytes]:
            return [str(message.content).encode() for message in await clients.queue(queue).peek_messages(count)]

        return await self._do(peek, queue=queue)

    async def delete_message(self, message: Message) -> None:
        """Delete a message, unless another receiver has it."""

        async def delete(clients: Clients) -> None:
            from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

            try:
                await clients.queue(message.queue).delete_message(message.receipt)
            except ResourceNotFoundError as error:
                if _code_of(error) == "QueueNotFound":
                    raise

        await self._do(delete, queue=message.queue)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        clients = self._by_loop.pop(asyncio.get_running_loop(), None)
        if clients is not None:
            await clients.aclose()

    async def _do(self, work: Callable[[Clients], Awaitable[T]], *, queue: str = "") -> T:
        """Run a step and return the result of *work*; raise StoreUnavailableError if it fails or takes too long.

        Args:
            work: Sends the requests. It handles the responses that are no failure, such as a missing blob.
            queue: The name of the queue that it uses, if it uses one.
        """
        from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - slow to import

        try:
            clients = self._clients_of_loop()
            async with asyncio.timeout(self._timeout):
                try:
                    result = await work(clients)
                except ResourceNotFoundError as error:
                    await self._create(clients, error, queue)
                    result = await work(clients)
        except Exception as error:
            # Not only AzureError: the libraries let exceptions of the event loop and of the connection pass.
            self._note_failure(error)
            raise StoreUnavailableError(store=self._store) from error
        self._outage.end("Azure Storage is back.")
        return result

    def _clients_of_loop(self) -> Clients:
        """Return the clients of the running event loop, to which their connections belong."""
        loop = asyncio.get_running_loop()
        clients = self._by_loop.get(loop)
        if clients is None:
            clients = self._by_loop[loop] = Clients(storage_settings(self._connection), self._container)
        return clients

    async def _create(self, clients: Clients, error: Exception, queue: str) -> None:
        """Create what a step did not find; raise the error again if that is neither a container nor a queue."""
        from azure.core.exceptions import ResourceExistsError  # noqa: PLC0415 - slow to import

        try:
            if _code_of(error) == "ContainerNotFound":
                await clients.container.create_container()
            elif _code_of(error) == "QueueNotFound":
                await clients.queue(queue).create_queue()
            else:
                raise error
        except ResourceExistsError:
            pass  # another instance has just created it

    def _note_failure(self, error: Exception) -> None:
        """Log the first of several failures."""
        detail = type(error).__name__
        code = _code_of(error)
        if code:
            detail = f"{detail}, {code}"
        elif isinstance(error, ValueError | ModuleNotFoundError):  # of the settings
            detail = str(error)
        self._outage.begin(
            "The %s in Azure Storage fails (%s). Requests that need it are answered with 503.",
            self._store,
            quote(detail, 500),
        )
