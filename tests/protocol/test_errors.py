"""The codes and the exceptions that carry them."""

from __future__ import annotations

import copy
import pickle

import pytest

from funcmcp._protocol import errors
from funcmcp._protocol.errors import (
    InvalidParams,
    MCPError,
    MissingClientCapability,
    ResourceNotFound,
    ToolError,
    WrongArguments,
)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("PARSE_ERROR", -32700),
        ("INVALID_REQUEST", -32600),
        ("METHOD_NOT_FOUND", -32601),
        ("INVALID_PARAMS", -32602),
        ("INTERNAL_ERROR", -32603),
        ("RESOURCE_NOT_FOUND", -32002),
        ("HEADER_MISMATCH", -32020),
        ("MISSING_CLIENT_CAPABILITY", -32021),
        ("UNSUPPORTED_PROTOCOL_VERSION", -32022),
    ],
)
def test_a_code_is_the_one_of_the_specification(name: str, code: int) -> None:
    assert getattr(errors, name) == code


def test_an_error_without_data_sends_code_and_message_only() -> None:
    assert MCPError(7, "No.").payload() == {"code": 7, "message": "No."}


@pytest.mark.parametrize("data", [False, 0, "", [], {"a": 1}])
def test_data_is_sent_even_where_it_is_empty(data: object) -> None:
    assert MCPError(7, "No.", data).payload() == {"code": 7, "message": "No.", "data": data}


def test_an_error_reads_as_its_message() -> None:
    assert str(MCPError(7, "No.")) == "No."


def test_invalid_params_is_a_protocol_error_with_its_own_code() -> None:
    error = InvalidParams("Bad.", {"uri": "x://y"})
    assert isinstance(error, MCPError)
    assert error.payload() == {"code": -32602, "message": "Bad.", "data": {"uri": "x://y"}}


def test_a_missing_capability_is_told_as_an_object_of_objects() -> None:
    payload = MissingClientCapability({"sampling": {}, "elicitation": {"url": {}}}).payload()
    assert payload["code"] == -32021
    assert payload["data"] == {"requiredCapabilities": {"sampling": {}, "elicitation": {"url": {}}}}
    assert str(payload["message"]).endswith("declares: sampling, elicitation.url")


def test_a_missing_extension_is_named() -> None:
    error = MissingClientCapability({"extensions": {"io.modelcontextprotocol/tasks": {}}})
    assert str(error).endswith("declares: extensions.io.modelcontextprotocol/tasks")


def test_a_tool_error_is_not_a_protocol_error() -> None:
    assert not issubclass(ToolError, MCPError)
    assert str(ToolError("Ask for a date in the future.")) == "Ask for a date in the future."


def test_a_resource_that_is_not_found_is_told_with_its_uri() -> None:
    payload = ResourceNotFound("menu://unicorn").payload()
    assert payload == {"code": -32002, "message": "Resource not found", "data": {"uri": "menu://unicorn"}}


class AuthorsError(MCPError):
    """An error of an author, whose arguments are not those of MCPError."""

    def __init__(self, *, order: int) -> None:
        super().__init__(9, f"Order {order} is closed.", {"order": order})
        self.order = order


@pytest.mark.parametrize(
    "error",
    [
        MCPError(7, "No.", {"a": 1}),
        InvalidParams("No.", ["a"]),
        ResourceNotFound("file:///a"),
        MissingClientCapability({"sampling": {}}),
        AuthorsError(order=3),
        ToolError("No."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickle_and_copy_with_its_attributes(error: Exception) -> None:
    error.add_note("in a worker process")
    for restored in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(restored) is type(error)
        assert (restored.args, vars(restored), str(restored)) == (error.args, vars(error), str(error))


def test_wrong_arguments_survive_pickle() -> None:
    error = WrongArguments([("a", "is required"), ("", "and 2 more")])
    restored = pickle.loads(pickle.dumps(error))
    assert (str(restored), restored.lines) == ("a: is required\nand 2 more", error.lines)
