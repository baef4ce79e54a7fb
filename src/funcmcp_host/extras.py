"""The bindings beside a trigger: tool properties, prompt arguments, blobs, queues and durable clients.

Each function has a plan, made once: a reader for each input and a writer for each output. A binding for which there is
neither makes the function unusable, with a reason; nothing is dropped in silence.
"""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Protocol

from funcmcp._authoring.calling.threads import Threads
from funcmcp_host.bindings import BindingError
from funcmcp_host.blobs import BlobError, FolderBlobs
from funcmcp_host.expressions import ExpressionError, Template, with_settings
from funcmcp_host.json_texts import loads
from funcmcp_host.workers.worker import NULL, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from funcmcp_host.bindings import ExtraBinding
    from funcmcp_host.blobs import BlobStore
    from funcmcp_host.expressions import TriggerNames
    from funcmcp_host.invocation import Trigger

_ARGUMENTS = {
    "mcptoolproperty": ("propertyname", "mcptoolargs"),
    "mcppromptargument": ("argumentname", "mcppromptargs"),
}
"""By kind of binding: the key that names the argument, and the group of the binding data that has its value."""


_DURABLE_CLIENTS = frozenset({"durableclient", "orchestrationclient"})


class InputReader(Protocol):
    """Makes the value of an input binding."""

    async def read(self, trigger: Trigger) -> Value:
        """Return the value for one call; raise BlobError or ExpressionError."""


class ClientReader(InputReader, Protocol):
    """Makes the value of a durable client binding."""

    @property
    def fault(self) -> str | None:
        """Why Durable Functions can't run; None if they can."""


class OutputWriter(Protocol):
    """Stores the value of an output binding."""

    async def write(self, trigger: Trigger, value: Value) -> None:
        """Store the value of one call; raise BlobError or ExpressionError."""


class Storage:
    """Where the blobs and queues of an app are.

    Args:
        folder: Holds a folder for each connection.
        settings: The app settings.
        uses_service: Whether blobs are in the storage accounts that the settings name, and not in the folder.

    Attributes:
        folder: The argument.
        durable: Makes the values of durable client bindings; None where there are none.
        settings: The app settings.
        threads: Run what reads and writes files and waits for the storage service.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], *, uses_service: bool = False) -> None:
        self.folder = folder
        self._uses_service = uses_service
        self._accounts: dict[str, BlobStore] = {}
        self.settings = settings
        self.durable: ClientReader | None = None
        self.threads: Threads = Threads()

    def blobs(self, connection: str) -> BlobStore:
        """Return the blobs of a connection.

        Raises:
            BindingError: The connection's app setting is missing or is not a connection string.
        """
        if not self._uses_service:
            return FolderBlobs(self.folder / _file_name(connection), self.threads)
        text = self._connection_string(connection)
        account = self._accounts.get(text)
        if account is None:
            account = self._accounts[text] = _account(connection, text, self.threads)
        return account

    async def aclose(self) -> None:
        """Close the connections to storage accounts."""
        for account in self._accounts.values():
            await account.aclose()

    def _connection_string(self, connection: str) -> str:
        # The Functions host looks for both names, in this order.
        for name in (f"AzureWebJobs{connection}", connection):
            text = self.settings.get(name)
            if text:
                return text
        if any(name.startswith(f"{connection}__") for name in self.settings):
            raise BindingError(
                f"The connection {connection!r} uses an identity, which funcmcp host does not support. "
                f"Set the app setting {connection!r} to a connection string."
            )
        raise BindingError(
            f"The app setting {connection!r} is not set. Set it to a connection string in local.settings.json, or "
            "leave out --storage azure."
        )

    def queue(self, connection: str, name: str) -> Path:
        """Return the file of a queue."""
        return self.folder / _file_name(connection) / "queues" / f"{_file_name(name)}.jsonl"


def _account(connection: str, text: str, threads: Threads) -> BlobStore:
    from funcmcp_host.blob_service import ServiceBlobs  # noqa: PLC0415 - of an extra

    try:
        return ServiceBlobs(text, threads)
    except ValueError as error:
        raise BindingError(f"The app setting {connection!r} is not a connection string. {error}") from error


def _file_name(text: str) -> str:
    if not text or text.startswith(".") or any(char in text for char in "/\\\0"):
        raise BindingError(f"{text!r} can't be the name of a connection or a queue.")
    return text


class Extras:
    """The plan of a function's bindings beside its trigger.

    Args:
        inputs: The readers of the inputs, by the names of parameters.
        outputs: The writers of the outputs, by the names of parameters.
    """

    def __init__(self, inputs: Mapping[str, InputReader], outputs: Mapping[str, OutputWriter]) -> None:
        self._inputs = inputs
        self._outputs = outputs

    @property
    def has_return_output(self) -> bool:
        """Whether the return value belongs to an output binding."""
        return "$return" in self._outputs

    async def read(self, trigger: Trigger) -> dict[str, Value]:
        """Return the values of the inputs by name; raise BlobError or ExpressionError."""
        return {name: await reader.read(trigger) for name, reader in self._inputs.items()}

    async def write(self, trigger: Trigger, values: Mapping[str, Value]) -> None:
        """Store the values of outputs; raise BlobError or ExpressionError."""
        for name, value in values.items():
            writer = self._outputs.get(name)
            if writer is not None and value.kind != "null":
                await writer.write(trigger, value)


def plan_extras(
    bindings: Sequence[ExtraBinding], storage: Storage, names: TriggerNames | None = None, function: str = ""
) -> Extras:
    """Return the plan for bindings.

    Args:
        bindings: The bindings.
        storage: Where blobs and queues are.
        names: What expressions can name; None if they can name anything, because the body of a request decides.
        function: The name of the function.

    Raises:
        BindingError: A binding is malformed, or is one that the host does not have.
    """
    inputs: dict[str, InputReader] = {}
    outputs: dict[str, OutputWriter] = {}
    for binding in bindings:
        try:
            template = _template(binding, storage, function)
            if template is not None and names is not None:
                template.check(names)
            if binding.is_output:
                outputs[binding.parameter] = _writer(binding, storage, template)
            else:
                inputs[binding.parameter] = _reader(binding, storage, template)
        except ExpressionError as error:
            raise BindingError(f"Its binding {_kind(binding)} {binding.parameter!r}: {error}") from error
    return Extras(inputs, outputs)


def _template(binding: ExtraBinding, storage: Storage, function: str) -> Template | None:
    """Return the text of a binding that may have expressions; None if the binding has none."""
    if binding.kind == "blob":
        path = binding.values.get("path") or binding.values.get("blobpath")
        if not isinstance(path, str) or not path:
            raise BindingError(f"Its blob binding {binding.parameter!r} has no path.")
        return Template(with_settings(path, storage.settings), function)
    if binding.kind == "queue" and binding.is_output:
        return Template(with_settings(_text(binding, "queuename"), storage.settings), function)
    return None


def _reader(binding: ExtraBinding, storage: Storage, template: Template | None) -> InputReader:
    if binding.kind in _ARGUMENTS:
        key, group = _ARGUMENTS[binding.kind]
        return _Argument(_text(binding, key), group)
    if binding.kind == "blob" and template is not None:
        return _Blob(binding, storage, template)
    if binding.kind in _DURABLE_CLIENTS and storage.durable is not None:
        if storage.durable.fault is not None:
            raise BindingError(storage.durable.fault)
        return storage.durable
    raise BindingError(f"Its input binding {_kind(binding)} is not supported by funcmcp host.")


def _writer(binding: ExtraBinding, storage: Storage, template: Template | None) -> OutputWriter:
    if binding.kind == "blob" and template is not None:
        return _Blob(binding, storage, template)
    if binding.kind == "queue" and template is not None:
        return _Queue(binding, storage, template)
    raise BindingError(f"Its output binding {_kind(binding)} is not supported by funcmcp host.")


def _kind(binding: ExtraBinding) -> str:
    return str(binding.values.get("type") or binding.kind)


def _text(binding: ExtraBinding, key: str) -> str:
    value = binding.values.get(key)
    if not isinstance(value, str) or not value:
        raise BindingError(f"Its binding {_kind(binding)} {binding.parameter!r} has no {key}.")
    return value


class _Argument:
    """One argument of a tool or a prompt."""

    def __init__(self, name: str, group: str) -> None:
        self._name = name
        self._group = group

    async def read(self, trigger: Trigger) -> Value:
        """Return the argument as a text; an absent one is empty, or null for a prompt."""
        text = trigger.groups.get(self._group, {}).get(self._name)
        if text is None:
            return Value("string", "") if self._group == "mcptoolargs" else NULL
        return Value("string", text)


class _Blob:
    """A blob whose path may have expressions."""

    def __init__(self, binding: ExtraBinding, storage: Storage, path: Template) -> None:
        self._path = path
        self._blobs = storage.blobs(str(binding.values.get("connection") or "AzureWebJobsStorage"))
        self._is_binary = str(binding.values.get("datatype") or "").lower() in {"binary", "stream", "1", "2"}

    async def read(self, trigger: Trigger) -> Value:
        """Return the blob; one that does not exist is null."""
        content = await self._blobs.read(self._path.value(trigger))
        if content is None:
            return NULL
        if self._is_binary:
            return Value("bytes", content)
        try:
            return Value("string", content.decode())
        except UnicodeDecodeError:
            return Value("bytes", content)

    async def write(self, trigger: Trigger, value: Value) -> None:
        """Write the blob."""
        await self._blobs.write(self._path.value(trigger), _bytes_of(value))


class _Queue:
    """A queue to which messages go: a file with a line of JSON for each. Its name may have expressions."""

    def __init__(self, binding: ExtraBinding, storage: Storage, name: Template) -> None:
        self._name = name
        self._storage = storage
        self._connection = str(binding.values.get("connection") or "AzureWebJobsStorage")
        if not name.has_expressions:
            storage.queue(self._connection, binding.values["queuename"])

    async def write(self, trigger: Trigger, value: Value) -> None:
        """Append a message, or each item of an array."""
        messages = [value.data]
        try:
            if value.kind == "bytes":
                messages = [value.data.decode("utf-8", "replace")]
            elif value.kind == "json":
                decoded = loads(value.data)
                messages = decoded if isinstance(decoded, list) else [decoded]
            file = self._storage.queue(self._connection, self._name.value(trigger))
            await self._storage.threads.run(_append, {"file": file, "messages": messages})
        except BindingError as error:
            raise BlobError(str(error)) from error
        except ValueError as error:
            raise BlobError(f"The message for a queue is not valid JSON: {error}") from error
        except OSError as error:
            raise BlobError(f"The queue {file.stem!r} can't be written: {error.strerror}.") from error


def _append(file: Path, messages: Sequence[object]) -> None:
    """Append all messages or, on a full disk, none: half a line would join with the next message."""
    content = "".join(json.dumps({"message": message}) + "\n" for message in messages).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if stream.write(content) < len(content):
            stream.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _bytes_of(value: Value) -> bytes:
    return value.data if value.kind == "bytes" else str(value.data).encode()
