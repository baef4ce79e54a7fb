"""The connection to Azure Storage: its settings, and its failures with a real Azurite."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.azure import storage
from funcmcp._adapters.azure.storage import Clients, Storage, StorageSettings, check_packages, storage_settings
from funcmcp._state.sessions.store import StoreUnavailableError
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.azurite import Azurite

pytestmark = pytest.mark.lowest("Azure's packages for storage send the requests.")

QUEUE = "words"
IDENTITY = {"X__blobServiceUri": "https://a.blob.example.com", "X__queueServiceUri": "https://a.queue.example.com"}


@pytest.fixture
async def connected(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Storage]:
    monkeypatch.setenv("STORAGE", azurite.connection_string)
    name = f"s-{secrets.token_hex(8)}"
    connected = Storage("STORAGE", name)
    yield connected
    await connected.aclose()


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        ({"X": "UseDevelopmentStorage=true"}, StorageSettings(connection_string="UseDevelopmentStorage=true")),
        (
            IDENTITY,
            StorageSettings(blobs="https://a.blob.example.com", queues="https://a.queue.example.com"),
        ),
        (
            {"X__accountName": "shop", "X__credential": "managedidentity", "X__clientId": "id"},
            StorageSettings(
                blobs="https://shop.blob.core.windows.net",
                queues="https://shop.queue.core.windows.net",
                managed=True,
                client_id="id",
            ),
        ),
        (
            {"X__accountName": "shop", **IDENTITY},
            StorageSettings(blobs="https://a.blob.example.com", queues="https://a.queue.example.com"),
        ),
    ],
)
def test_a_connection_is_a_connection_string_or_the_urls_of_the_services(
    environment: dict[str, str], settings: StorageSettings
) -> None:
    assert storage_settings("X", environment) == settings


@pytest.mark.parametrize("missing", ["X__blobServiceUri", "X__queueServiceUri"])
def test_a_connection_without_settings_is_refused_with_the_settings_to_set(missing: str) -> None:
    environment = {name: value for name, value in IDENTITY.items() if name != missing}
    with pytest.raises(ValueError, match="Set X to a connection string, or set X__blobServiceUri and X__queueService"):
        storage_settings("X", environment)


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_an_identity_signs_in_and_its_connections_are_closed() -> None:
    for settings in (
        storage_settings("X", IDENTITY),
        storage_settings("X", {**IDENTITY, "X__credential": "managedidentity"}),
    ):
        clients = Clients(settings, "container")
        assert clients.container.url == "https://a.blob.example.com/container"
        assert clients.queue("queue").url == "https://a.queue.example.com/queue"
        await clients.aclose()


async def test_an_identity_without_azure_identity_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity.aio", None)
    with pytest.raises(ModuleNotFoundError, match="pip install azure-identity"):
        Clients(storage_settings("X", IDENTITY), "container")


@pytest.mark.parametrize("module", ["azure.storage.blob", "azure.storage.queue", "aiohttp"])
def test_a_missing_package_is_named_with_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(storage._PACKAGES, f"{module}x", "the-package")
    with pytest.raises(ModuleNotFoundError, match=r'the-package: pip install "funcmcp\[azure-tasks\]"'):
        check_packages()


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_a_container_and_a_queue_are_created_when_they_are_needed(connected: Storage) -> None:
    assert await connected.read("a") is None
    await connected.create("a", b"1", {"id": "x"})
    await connected.create("a", b"2", {})  # as the library does when the response to the first was lost
    blob = await connected.read("a")
    assert blob is not None
    assert (blob.content, blob.metadata) == (b"1", {"id": "x"})
    assert await connected.receive(QUEUE, 1, 1) == []
    await connected.send(QUEUE, "text", 0)
    (message,) = await connected.receive(QUEUE, 5, 30)
    assert message.content == b"dGV4dA=="
    await connected.delete_message(message)
    await connected.delete_message(message)


async def test_a_blob_is_replaced_only_if_it_has_not_changed(connected: Storage) -> None:
    await connected.create("a", b"1", {})
    blob = await connected.read("a")
    assert blob is not None
    assert await connected.replace("a", b"2", {"by": "first"}, blob.version) is True
    assert await connected.replace("a", b"3", {"by": "second"}, blob.version) is False
    assert await connected.blobs("") == [("a", {"by": "first"})]
    await connected.delete("a")
    await connected.delete("a")
    assert await connected.replace("a", b"3", {}, blob.version) is False
    assert await connected.blobs("") == []


@pytest.mark.parametrize("size", [1, 2, 4, 5000])
async def test_a_list_is_read_in_pages(connected: Storage, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(storage, "_PAGE_SIZE", size)
    assert await connected.blobs("a/") == []
    for name in ("a/1", "a/2", "a/3", "a/4", "b/5"):
        await connected.create(name, b"", {"name": name[-1]})
    assert await connected.blobs("a/") == [(f"a/{number}", {"name": str(number)}) for number in range(1, 5)]


async def test_no_url_of_a_blob_gets_into_the_log(connected: Storage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await connected.create("secret-name", b"1", {})
    await connected.read("secret-name")
    assert "secret-name" not in caplog.text


async def test_a_storage_that_is_away_fails_in_a_bounded_time_and_is_logged_once(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STORAGE", azurite.connection_string.replace(str(azurite.blob_port), "9"))
    async with aclosing(Storage("STORAGE", "x-1", timeout=0.2)) as away:
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                async with asyncio.timeout(PATIENCE):
                    await away.read("a")
        monkeypatch.setattr(away, "_timeout", PATIENCE)
        assert await away.receive(QUEUE, 1, 1) == []
    messages = [record.message for record in caplog.records if record.name == "funcmcp"]
    assert len(messages) == 2
    assert messages[0].startswith("The task store in Azure Storage fails (TimeoutError).")
    assert messages[1] == "Azure Storage is back."


async def test_missing_settings_are_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("STORAGE", raising=False)
    with pytest.raises(StoreUnavailableError):
        await Storage("STORAGE", "x-1").read("a")
    assert "Set STORAGE to a connection string" in caplog.text


async def test_a_refused_key_is_in_the_log_by_its_code(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STORAGE", azurite.connection_string.replace("AccountKey=Eby8", "AccountKey=AAAA"))
    refused = Storage("STORAGE", "x-1")
    with pytest.raises(StoreUnavailableError):
        await refused.read("a")
    await refused.aclose()
    assert "(HttpResponseError, AuthorizationFailure)" in caplog.text


def test_connections_belong_to_their_event_loop(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE", azurite.connection_string)
    connected = Storage("STORAGE", f"s-{secrets.token_hex(8)}")

    async def use(content: bytes) -> None:
        await connected.write("a", content)
        await connected.aclose()

    asyncio.run(use(b"1"))
    asyncio.run(use(b"2"))
