"""The messages of FunctionRpc, the gRPC protocol between the Functions host and its language workers.

Source: FunctionRpc.proto of Microsoft's azure-functions-language-worker-protobuf. `SCHEMA` has the messages and fields
that this host reads or writes; protobuf skips the fields that it does not know. Enumerations are int32 here, which has
the same encoding. The classes live in a descriptor pool of their own, so an app or a worker library that is imported in
the same process can register Microsoft's messages under the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE = "AzureFunctionsRpcMessages.FunctionRpc"
METHOD = "EventStream"

SUCCESS, CANCELLED = 1, 2
"""Values of StatusResult.status. Every other one is a failure."""

SYSTEM_LOG = 1
"""The value of RpcLog.log_category for records of the worker itself."""

BINDING_DIRECTIONS = {"in": 0, "out": 1, "inout": 2}
BINDING_DATA_TYPES = {"string": 1, "binary": 2, "stream": 3}

_PACKAGE = "AzureFunctionsRpcMessages"


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: The field's number on the wire.
        type: A scalar type of protobuf, or the name of a message. For a map this is the type of its values.
        form: "list" for a repeated field, "map" for a map with texts as keys.
        oneof: The group of fields of which a message has at most one.
    """

    number: int
    type: str = "string"
    form: Literal["", "list", "map"] = ""
    oneof: str = ""


def _choice(oneof: str, **fields: tuple[int, str]) -> dict[str, Field]:
    """Return fields of which a message has at most one."""
    return {name: Field(number, kind, oneof=oneof) for name, (number, kind) in fields.items()}


SCHEMA: Mapping[str, Mapping[str, Field]] = {
    "StreamingMessage": {
        "request_id": Field(1),
        **_choice(
            "content",
            rpc_log=(2, "RpcLog"),
            invocation_request=(4, "InvocationRequest"),
            invocation_response=(5, "InvocationResponse"),
            function_load_request=(8, "FunctionLoadRequest"),
            function_load_response=(9, "FunctionLoadResponse"),
            worker_status_request=(12, "WorkerStatusRequest"),
            worker_status_response=(13, "WorkerStatusResponse"),
            worker_terminate=(14, "WorkerTerminate"),
            worker_init_response=(16, "WorkerInitResponse"),
            worker_init_request=(17, "WorkerInitRequest"),
            start_stream=(20, "StartStream"),
            invocation_cancel=(21, "InvocationCancel"),
            functions_metadata_request=(29, "FunctionsMetadataRequest"),
            function_metadata_response=(30, "FunctionMetadataResponse"),
            function_load_request_collection=(31, "FunctionLoadRequestCollection"),
            function_load_response_collection=(32, "FunctionLoadResponseCollection"),
        ),
    },
    # The start of a worker
    "StartStream": {"worker_id": Field(2)},
    "WorkerInitRequest": {
        "host_version": Field(1),
        "capabilities": Field(2, form="map"),
        "worker_directory": Field(4),
        "function_app_directory": Field(5),
    },
    "WorkerInitResponse": {
        "capabilities": Field(2, form="map"),
        "result": Field(3, "StatusResult"),
        "worker_metadata": Field(4, "WorkerMetadata"),
    },
    "WorkerMetadata": {"runtime_name": Field(1), "runtime_version": Field(2), "worker_version": Field(3)},
    "StatusResult": {"result": Field(1), "exception": Field(2, "RpcException"), "status": Field(4, "int32")},
    "RpcException": {"stack_trace": Field(1), "message": Field(2), "source": Field(3), "type": Field(5)},
    # The functions of an app
    "FunctionsMetadataRequest": {"function_app_directory": Field(1)},
    "FunctionMetadataResponse": {
        "function_metadata_results": Field(1, "RpcFunctionMetadata", "list"),
        "result": Field(2, "StatusResult"),
        "use_default_metadata_indexing": Field(3, "bool"),
    },
    "RpcFunctionMetadata": {
        "directory": Field(1),
        "script_file": Field(2),
        "entry_point": Field(3),
        "name": Field(4),
        "bindings": Field(6, "BindingInfo", "map"),
        "status": Field(8, "StatusResult"),
        "language": Field(9),
        "raw_bindings": Field(10, form="list"),
        "function_id": Field(13),
        "properties": Field(16, form="map"),
    },
    "BindingInfo": {"type": Field(2), "direction": Field(3, "int32"), "data_type": Field(4, "int32")},
    "FunctionLoadRequest": {"function_id": Field(1), "metadata": Field(2, "RpcFunctionMetadata")},
    "FunctionLoadRequestCollection": {"function_load_requests": Field(1, "FunctionLoadRequest", "list")},
    "FunctionLoadResponse": {"function_id": Field(1), "result": Field(2, "StatusResult")},
    "FunctionLoadResponseCollection": {"function_load_responses": Field(1, "FunctionLoadResponse", "list")},
    # Calls
    "InvocationRequest": {
        "invocation_id": Field(1),
        "function_id": Field(2),
        "input_data": Field(3, "ParameterBinding", "list"),
        "trigger_metadata": Field(4, "TypedData", "map"),
        "trace_context": Field(5, "RpcTraceContext"),
    },
    "InvocationResponse": {
        "invocation_id": Field(1),
        "output_data": Field(2, "ParameterBinding", "list"),
        "result": Field(3, "StatusResult"),
        "return_value": Field(4, "TypedData"),
    },
    "InvocationCancel": {"invocation_id": Field(2)},
    "ParameterBinding": {"name": Field(1), **_choice("rpc_data", data=(2, "TypedData"))},
    "RpcTraceContext": {"trace_parent": Field(1), "trace_state": Field(2)},
    "RpcLog": {
        "invocation_id": Field(1),
        "category": Field(2),
        "level": Field(3, "int32"),
        "message": Field(4),
        "exception": Field(6, "RpcException"),
        "log_category": Field(8, "int32"),
    },
    "WorkerStatusRequest": {},
    "WorkerStatusResponse": {},
    "WorkerTerminate": {"grace_period": Field(1, "Duration")},
    "Duration": {"seconds": Field(1, "int64"), "nanos": Field(2, "int32")},
    # Values
    "TypedData": _choice(
        "data",
        string=(1, "string"),
        json=(2, "string"),
        bytes=(3, "bytes"),
        stream=(4, "bytes"),
        http=(5, "RpcHttp"),
        int=(6, "sint64"),
        double=(7, "double"),
        collection_bytes=(8, "CollectionBytes"),
        collection_string=(9, "CollectionString"),
        collection_double=(10, "CollectionDouble"),
        collection_sint64=(11, "CollectionSInt64"),
        model_binding_data=(12, "ModelBindingData"),
        collection_model_binding_data=(13, "CollectionModelBindingData"),
    ),
    "CollectionBytes": {"bytes": Field(1, "bytes", "list")},
    "CollectionString": {"string": Field(1, "string", "list")},
    "CollectionDouble": {"double": Field(1, "double", "list")},
    "CollectionSInt64": {"sint64": Field(1, "sint64", "list")},
    "ModelBindingData": {
        "version": Field(1),
        "source": Field(2),
        "content_type": Field(3),
        "content": Field(4, "bytes"),
    },
    "CollectionModelBindingData": {"model_binding_data": Field(1, "ModelBindingData", "list")},
    # Requests and responses of HTTP triggers
    "RpcHttp": {
        "method": Field(1),
        "url": Field(2),
        "headers": Field(3, form="map"),
        "body": Field(4, "TypedData"),
        "params": Field(10, form="map"),
        "status_code": Field(12),
        "query": Field(15, form="map"),
        "rawBody": Field(17, "TypedData"),
        "cookies": Field(19, "RpcHttpCookie", "list"),
        "nullable_headers": Field(20, "NullableString", "map"),
        "nullable_params": Field(21, "NullableString", "map"),
        "nullable_query": Field(22, "NullableString", "map"),
    },
    "RpcHttpCookie": {
        "name": Field(1),
        "value": Field(2),
        "domain": Field(3, "NullableString"),
        "path": Field(4, "NullableString"),
        "expires": Field(5, "NullableTimestamp"),
        "secure": Field(6, "NullableBool"),
        "http_only": Field(7, "NullableBool"),
        "same_site": Field(8, "int32"),
        "max_age": Field(9, "NullableDouble"),
    },
    "NullableString": _choice("string", value=(1, "string")),
    "NullableBool": _choice("bool", value=(1, "bool")),
    "NullableDouble": _choice("double", value=(1, "double")),
    "NullableTimestamp": _choice("timestamp", value=(1, "Timestamp")),
    "Timestamp": {"seconds": Field(1, "int64"), "nanos": Field(2, "int32")},
}
"""The messages by name, and their fields by name."""


def file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """Return the schema as a file of protobuf."""
    file = descriptor_pb2.FileDescriptorProto(name="FunctionRpc.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        oneofs: list[str] = []
        for field_name, field in fields.items():
            described = message.field.add(name=field_name, number=field.number)
            described.label = described.LABEL_REPEATED if field.form else described.LABEL_OPTIONAL
            if field.form == "map":
                entry = _map_entry(message, field_name, field.type)
                described.type, described.type_name = described.TYPE_MESSAGE, f".{_PACKAGE}.{name}.{entry}"
            else:
                _set_type(described, field.type)
            if field.oneof:
                if field.oneof not in oneofs:
                    oneofs.append(field.oneof)
                    message.oneof_decl.add(name=field.oneof)
                described.oneof_index = oneofs.index(field.oneof)
    return file


def _map_entry(message: Any, field_name: str, value_type: str) -> str:
    """Add the message that is an entry of a map; return its name."""
    name = "".join(part.capitalize() for part in field_name.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (member, kind) in enumerate([("key", "string"), ("value", value_type)], 1):
        field = entry.field.add(name=member, number=number)
        field.label = field.LABEL_OPTIONAL
        _set_type(field, kind)
    return name


def _set_type(field: Any, kind: str) -> None:
    if kind in SCHEMA:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")


_pool = descriptor_pool.DescriptorPool()
_pool.Add(file_descriptor())


def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


StreamingMessage = _message_class("StreamingMessage")
RpcFunctionMetadata = _message_class("RpcFunctionMetadata")
TypedData = _message_class("TypedData")
