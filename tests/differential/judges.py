"""What funcmcp, JSON Schema, pydantic and FastMCP say about calls of a signature.

A judge may be asked under some of the rules of `differences`, which change what it says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
from jsonschema import Draft202012Validator
from pydantic import ConfigDict, TypeAdapter
from pydantic_core import ValidationError

from funcmcp._protocol.errors import ToolError
from tests.authoring.tool_calls import run, tool_of
from tests.differential import vocabulary
from tests.differential.differences import RULES
from tests.nodejs import HOME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.differential.signatures import Signature

REPOSITORY = Path(__file__).parents[2]
FASTMCP = REPOSITORY / ".servers" / "differential" / "bin" / "python"
NODE = HOME / "node_modules" / "node" / "bin" / "node"
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """What became of a call.

    Attributes:
        received: What the function received, in comparable form. None if the arguments were rejected.
        result: The returned value as JSON. None if nothing was returned.
        error: Why the arguments were rejected, or why the result could not be written.
    """

    received: str | None
    result: Any = None
    error: str = ""


class FuncMCP:
    """A signature as a tool of funcmcp.

    Attributes:
        input_schema: The announced schema of the arguments.
        output_schema: The announced schema of the structured content; None if there is none.
    """

    def __init__(self, signature: Signature) -> None:
        function, self._received = vocabulary.tool_of(signature.source())
        self._tool = tool_of(function)
        definition = self._tool.describe()
        self.input_schema: dict[str, Any] = definition["inputSchema"]
        self.output_schema: dict[str, Any] | None = definition.get("outputSchema")

    async def call(self, arguments: dict[str, Any]) -> Verdict:
        """Call the tool."""
        self._received.clear()
        try:
            result = await run(self._tool, arguments)
        except ToolError as error:
            return Verdict(None, error=str(error))
        except (TypeError, ValueError) as error:
            return Verdict("".join(self._received), error=repr(error))
        return Verdict(self._received[0], result.get("structuredContent"))


def _pattern(validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if validator.is_type(value, "string") and not re.search(pattern, value, re.ASCII):
        yield jsonschema.ValidationError("The pattern does not match.")


_extend: Any = jsonschema.validators.extend  # has no types
_Validator = _extend(Draft202012Validator, {"pattern": _pattern})
"""The validator of jsonschema, with patterns whose ``\\d`` matches the digits of ECMA-262 instead of Python's."""


class Schema:
    """An announced schema under the rules, as two validators read it.

    Args:
        schema: The schema.
        ajv: The worker that runs ajv; None if it is not installed.
        of_arguments: Whether it is the schema of the arguments.
    """

    def __init__(self, schema: dict[str, Any], ajv: Worker | None, *, of_arguments: bool) -> None:
        self._schema = schema
        self._ajv = ajv
        self._of_arguments = of_arguments
        self._cached: dict[frozenset[str], dict[str, Any]] = {}

    def by_jsonschema(self, value: Any, rules: frozenset[str] = NOTHING) -> bool:
        """Return whether a value is valid for the Python package jsonschema, with formats."""
        validator: Any = _Validator(self._under(rules), format_checker=Draft202012Validator.FORMAT_CHECKER)
        return bool(validator.is_valid(value))

    def by_ajv(self, value: Any, rules: frozenset[str] = NOTHING) -> bool | str:
        """Return whether a value is valid for ajv, or its error about the schema."""
        assert self._ajv is not None
        answer: bool | str = self._ajv.ask({"schema": self._under(rules), "value": value})
        return answer

    def _under(self, rules: frozenset[str]) -> dict[str, Any]:
        if rules not in self._cached:
            schema: Any = self._schema
            for rule in RULES:
                if rule.name in rules and rule.schema is not None:
                    schema = _walked(schema, rule.schema)
                if rule.name in rules and self._of_arguments and rule.arguments_schema is not None:
                    schema = rule.arguments_schema(schema)
            self._cached[rules] = schema
        return self._cached[rules]


class Pydantic:
    """A signature as pydantic reads it under the rules.

    Args:
        signature: The signature.
        strict: Whether JSON is read strictly and names in results are aliases, or everything is as pydantic does it by
            default, from values of Python.
    """

    def __init__(self, signature: Signature, *, strict: bool) -> None:
        self._signature = signature
        self._strict = strict
        self._cached: dict[frozenset[str], _Adapters] = {}

    def call(self, arguments: dict[str, Any], rules: frozenset[str] = NOTHING) -> Verdict:
        """Validate arguments, call the function, and serialize what it returns."""
        if rules not in self._cached:
            self._cached[rules] = _Adapters(self._signature, rules)
        return self._cached[rules].call(arguments, strict=self._strict)


class _Adapters:
    """The adapters of pydantic for a function and for what it returns."""

    def __init__(self, signature: Signature, rules: frozenset[str]) -> None:
        names = {name: value for rule in RULES if rule.name in rules for name, value in rule.names.items()}
        function: Any
        function, self._received = vocabulary.tool_of(signature.source(rules), names)
        self._returns = function.__annotations__["return"]
        # A call that asks for strictness leaves nothing lax, which whole numbers are under their rule. Models have the
        # same option in their source.
        self._has_lax_parts = "whole numbers" in rules
        self._call: Any = TypeAdapter(function, config=ConfigDict(strict=self._has_lax_parts))

    @cached_property
    def _result(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._returns)

    def call(self, arguments: dict[str, Any], *, strict: bool) -> Verdict:
        self._received.clear()
        try:
            if strict:
                value = self._call.validate_json(json.dumps(arguments), strict=None if self._has_lax_parts else True)
            else:
                value = self._call.validate_python(arguments)
        except ValidationError as error:
            return Verdict(None, error=str(error))
        result = self._result.dump_python(value, mode="json", by_alias=strict) if self._returns is not None else None
        return Verdict(self._received[0], result)


class Worker:
    """A process that answers lines of JSON.

    Args:
        command: Its command.
    """

    def __init__(self, command: Sequence[str | Path]) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))}
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request: Any) -> Any:
        """Return the answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"{self._process.args!r} has ended.")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def new_ajv() -> Worker | None:
    """Start ajv in Node. Return None if Node is not installed."""
    return Worker([NODE, HOME / "differential.mjs"]) if NODE.exists() else None


def new_fastmcp() -> Worker | None:
    """Start FastMCP in its environment. Return None if there is none."""
    return Worker([FASTMCP, "-m", "tests.differential.fastmcp_worker"]) if FASTMCP.exists() else None


_MAPS = frozenset({"properties", "patternProperties", "$defs"})
_DATA = frozenset({"const", "default", "enum", "examples", "required"})


def _walked(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a schema in which each schema is replaced by what *change* returns for it, innermost first."""
    if isinstance(node, list):
        return [_walked(member, change) for member in node]
    if not isinstance(node, dict):
        return node
    walked: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in _MAPS:
            walked[keyword] = {name: _walked(member, change) for name, member in value.items()}
        else:
            walked[keyword] = value if keyword in _DATA else _walked(value, change)
    return change(walked)
