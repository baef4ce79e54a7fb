"""The messages of FunctionRpc, compared with Microsoft's own description of them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from funcmcp_host.workers.rpc_messages import SCHEMA, StreamingMessage, file_descriptor
from tests.requirements import require

FILES = ("FunctionRpc_pb2.py", "shared/NullableTypes_pb2.py")
Field = descriptor_pb2.FieldDescriptorProto
WELL_KNOWN = {"Duration": "google.protobuf.Duration", "Timestamp": "google.protobuf.Timestamp"}


def descriptor_in(code: str) -> Any:
    """Return the descriptor that a generated module contains, without running the module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("AddSerializedFile"):
            return descriptor_pb2.FileDescriptorProto.FromString(ast.literal_eval(node.args[0]))
    raise AssertionError("The module contains no descriptor.")


@pytest.fixture(scope="module")
def microsofts() -> dict[str, Any]:
    """Microsoft's messages by name."""
    folder = Path(sys.prefix) / "function-worker" / "tests" / "protos"
    require("The packages of scripts/setup-python.sh for language workers", folder.exists())
    messages = {}
    for name in FILES:
        for message in descriptor_in((folder / name).read_text()).message_type:
            messages[message.name] = message
    for name, full_name in WELL_KNOWN.items():
        module = __import__(f"{full_name.lower()}_pb2", fromlist=["DESCRIPTOR"])
        message = descriptor_pb2.DescriptorProto()
        module.DESCRIPTOR.message_types_by_name[name].CopyToProto(message)
        messages[name] = message
    return messages


def described(message: Any, field: Any) -> tuple[Any, ...]:
    """Return what is on the wire of a field, and the group of alternatives that it belongs to."""
    kind = "int32" if field.type == Field.TYPE_ENUM else Field.Type.Name(field.type)[5:].lower()
    type_name = field.type_name.rpartition(".")[2]
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
    if kind == "message" and type_name in entries:
        entry = entries[type_name]
        return field.number, "map", [described(entry, member) for member in entry.field], oneof
    return field.number, kind, type_name if kind == "message" else "", field.label == Field.LABEL_REPEATED, oneof


@pytest.mark.parametrize("name", SCHEMA)
def test_every_field_is_the_one_of_microsofts_message(name: str, microsofts: dict[str, Any]) -> None:
    ours = next(message for message in file_descriptor().message_type if message.name == name)
    theirs = {field.name: described(microsofts[name], field) for field in microsofts[name].field}
    for field in ours.field:
        assert described(ours, field) == theirs[field.name], field.name


def test_fields_that_are_not_in_the_schema_are_skipped() -> None:
    """FileChangeEventRequest (6) and WorkerActionResponse (7) are messages that this host does not use."""
    message = StreamingMessage.FromString(b"\x0a\x01r\x32\x00\x3a\x02\x08\x01")
    assert (message.request_id, message.WhichOneof("content")) == ("r", None)
