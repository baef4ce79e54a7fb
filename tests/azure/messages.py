"""The messages between the Functions host and a Python worker, as far as the worker library looks at them.

The real ones are protobuf messages of FunctionRpc.proto; the worker library gets their classes handed in and asks no
more of them than attributes. Source: azure-functions-language-worker-protobuf, "FunctionRpc.proto".
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Message(SimpleNamespace):
    """A message of any kind: what it was made with."""


class TypedData(Message):
    """A value: exactly one of `string`, `bytes`, `json`, `int`, `double`, `http`."""

    def WhichOneof(self, _: str) -> str | None:  # noqa: N802 - protobuf's name
        """Return the name of the one that is set."""
        return next(iter(vars(self)), None)


class ParameterBinding(Message):
    """A named value."""

    def WhichOneof(self, _: str) -> str:  # noqa: N802 - protobuf's name
        """Say that the value comes in the message, and not in shared memory."""
        return "data"


class StatusResult(Message):
    """How a request went."""

    Failure, Success, Cancelled = range(3)


class BindingInfo(Message):
    """A binding of a function."""

    undefined, string, binary, stream = range(4)
    out, inout = 1, 2


class RpcHttpCookie(Message):
    """A cookie of a response."""

    SameSite = SimpleNamespace(**{"None": 0, "Lax": 1, "Strict": 2, "ExplicitNone": 3})


_OTHERS = (
    "FunctionLoadResponse",
    "FunctionMetadataResponse",
    "InvocationResponse",
    "NullableBool",
    "NullableDouble",
    "NullableString",
    "NullableTimestamp",
    "RpcException",
    "RpcFunctionMetadata",
    "RpcHttp",
    "RpcRetryOptions",
    "WorkerInitResponse",
    "WorkerMetadata",
)
PROTOS = SimpleNamespace(
    TypedData=TypedData,
    ParameterBinding=ParameterBinding,
    StatusResult=StatusResult,
    BindingInfo=BindingInfo,
    RpcHttpCookie=RpcHttpCookie,
    **dict.fromkeys(_OTHERS, Message),
)
"""The classes, as the worker hands them to its library."""


def streaming_message(kind: str, content: Message, **properties: Any) -> Message:
    """Return what the worker hands to its library for a message of the host."""
    return Message(request=Message(**{kind: content}), properties=properties)


def invocation(
    invocation_id: str, function_id: str, inputs: Mapping[str, TypedData], metadata: Mapping[str, TypedData]
) -> Message:
    """Return an InvocationRequest."""
    return Message(
        invocation_id=invocation_id,
        function_id=function_id,
        input_data=[ParameterBinding(name=name, data=data) for name, data in inputs.items()],
        trigger_metadata=dict(metadata),
        trace_context=Message(trace_parent="", trace_state="", attributes={}),
        retry_context=Message(retry_count=0, max_retry_count=0, exception=None),
    )
