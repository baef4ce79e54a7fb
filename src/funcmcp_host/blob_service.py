"""Blobs in Azure Storage or in Azurite, through azure-storage-blob (extra ``host-storage``)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, LinearRetry

from funcmcp_host.blobs import BlobError, shown, split_path

if TYPE_CHECKING:
    from funcmcp._authoring.calling.threads import Threads

_log = logging.getLogger("funcmcp.host")

_EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_EMULATOR = (
    f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={_EMULATOR_KEY};"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)
"""What ``UseDevelopmentStorage=true`` stands for. The key is public."""

_CONNECT_SECONDS = 5
_READ_SECONDS = 60
_RETRIES = 2
_NO_CONTAINER = "ContainerNotFound"


class ServiceBlobs:
    """Blobs of a storage account.

    Args:
        connection_string: The account's connection string, or ``UseDevelopmentStorage=true`` for Azurite.
        threads: Wait for the storage service.

    Raises:
        ValueError: The connection string can't be read.
    """

    def __init__(self, connection_string: str, threads: Threads) -> None:
        settings = [part.strip().lower() for part in connection_string.split(";")]
        if "usedevelopmentstorage=true" in settings:
            connection_string = _EMULATOR
        self._client = BlobServiceClient.from_connection_string(
            connection_string,
            connection_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retry_policy=LinearRetry(backoff=1, retry_total=_RETRIES),
        )
        self._threads = threads

    async def read(self, path: str) -> bytes | None:
        """Return a blob, or None if it does not exist."""
        return await self._threads.run(self._read, {"path": path})

    async def write(self, path: str, content: bytes) -> None:
        """Write a blob, and make its container if it does not exist."""
        await self._threads.run(self._write, {"path": path, "content": content})

    async def aclose(self) -> None:
        """Close the connections."""
        await self._threads.run(self._client.close, {})

    def _read(self, path: str) -> bytes | None:
        container, name = split_path(path)
        try:
            content: bytes = self._client.get_blob_client(container, name).download_blob().readall()
        except ResourceNotFoundError:
            return None
        except AzureError as error:
            raise _failure(path, "read", error) from error
        return content

    def _write(self, path: str, content: bytes) -> None:
        container, name = split_path(path)
        blob = self._client.get_blob_client(container, name)
        try:
            try:
                blob.upload_blob(content, overwrite=True)
            except ResourceNotFoundError as error:
                if getattr(error, "error_code", None) != _NO_CONTAINER:
                    raise
                self._make_container(container)
                blob.upload_blob(content, overwrite=True)
        except AzureError as error:
            raise _failure(path, "written", error) from error

    def _make_container(self, name: str) -> None:
        try:
            self._client.create_container(name)
        except ResourceExistsError:
            return  # another call has made it


def _failure(path: str, verb: str, error: AzureError) -> BlobError:
    """Return an error for the client of the host; the log has the text of the storage service."""
    _log.error("The blob %r can't be %s. %s", path, verb, str(error).partition("\n")[0])
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        reason = f"the storage service answered with status {error.status_code}"
    else:
        reason = "the storage service does not answer"
    return BlobError(f"The blob {shown(path)} can't be {verb}: {reason}.")
