"""The arguments of a call: their schema, their validation, and their faults in plain words.

They are validated as JSON, strictly, by pydantic: what the schema says passes, and nothing else. So "5" is no integer
and true is not 1, but a date is written as text and an array may fill a set.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeVar

from pydantic import ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, ValidationError, to_json, to_jsonable_python
from typing_extensions import TypedDict

from funcmcp.authoring.faults import in_words
from funcmcp.authoring.schema import adapter, input_schema, ordered_schema
from funcmcp.authoring.signature import Parameter, allows_none
from funcmcp.protocol.errors import ToolError
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp.authoring.signature import Plan

T = TypeVar("T")

_EMPTY = inspect.Parameter.empty


class Validator:
    """Turns a JSON value into a Python value of one type, or says in words why it can't.

    Args:
        kind: the type.
        lax: allow pydantic's conversions, such as "5" to 5.
        prefix: stands before the path of each fault.
    """

    __slots__ = ("_kind", "_lax", "_prefix", "_validate")

    def __init__(self, kind: Any, *, lax: bool = False, prefix: tuple[str, ...] = ()) -> None:
        self._validate = adapter(kind).validator.validate_json
        self._lax = lax
        self._prefix = prefix

    @classmethod
    def of_value(cls, name: str, kind: Any) -> Callable[[Any], Any]:
        """Return a validator of one argument."""
        return cls(kind, prefix=(name,))

    @classmethod
    def of_model(cls, kind: Any) -> Callable[[Any], Any]:
        """Return a validator of an object with named fields."""
        return cls(kind)

    def __call__(self, value: Any) -> Any:
        """Return the Python value; raise ToolError with one line for each fault."""
        try:
            return self._validate(to_json(value), strict=not self._lax)
        except ValidationError as error:
            mended = _mend_whole_numbers(value, error)
            if mended is not None:
                try:
                    return self._validate(to_json(mended), strict=not self._lax)
                except ValidationError as rest:
                    error = rest
            raise ToolError(in_words(error, value, self._prefix)) from None


class ArgumentBinder:
    """Binds a call's arguments to a function's parameters.

    Args:
        plan: who fills which parameter.
        lax: see `Validator`.
        descriptions: of parameters, from the docstring.
    """

    def __init__(self, plan: Plan, *, lax: bool, descriptions: Callable[[], Mapping[str, str]]) -> None:
        self._plan = plan
        self._lax = lax
        self._descriptions = descriptions
        self._fields = [_Field(parameter) for parameter in plan.arguments]
        self._kind = _typed_dict(self._fields, forbid=not plan.arguments and plan.spread is None)
        self._names = frozenset(field.wire_name for field in self._fields)
        # What the function needs although the caller left it out and the signature itself has no default for it.
        self._fill = {field.parameter.name: field for field in self._fields if field.fills}
        self._own: Validator | None = None
        self._spread: Validator | None = None

    def bind(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function; raise ToolError with all faults together."""
        if self._own is None:
            self._build()
        if self._spread is not None:
            return self._bind_spread(arguments)
        values: dict[str, Any] = self._own(arguments)  # type: ignore[misc] # built above
        for name, field in self._fill.items():
            if name not in values:
                values[name] = field.default()
        return values

    def schema(self) -> dict[str, Any]:
        """Return the input schema."""
        schema = input_schema(self._kind)
        properties = schema.setdefault("properties", {})
        for field in self._fields:
            field.describe(properties[field.wire_name], self._descriptions())
        if self._plan.spread is not None:
            self._merge(schema, input_schema(self._plan.spread.annotation))
        if not schema["properties"]:
            del schema["properties"]
        ordered: dict[str, Any] = ordered_schema(schema)
        return ordered

    def _build(self) -> None:
        if self._plan.spread is not None:
            self._spread = Validator(self._plan.spread.annotation, lax=self._lax)
        self._own = Validator(self._kind, lax=self._lax)

    def _bind_spread(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Give the model what is not an argument of its own, and report the faults of both together."""
        own = {name: value for name, value in arguments.items() if name in self._names}
        rest = {name: value for name, value in arguments.items() if name not in self._names}
        faults: list[str] = []
        bound: dict[str, Any] = {}
        for validator, value in ((self._own, own), (self._spread, rest)):
            try:
                result = validator(value)  # type: ignore[misc] # built by `bind`
            except ToolError as error:
                faults.append(str(error))
            else:
                bound |= result if validator is self._own else {self._plan.spread.name: result}  # type: ignore[union-attr]
        if faults:
            raise ToolError("\n".join(faults))
        return bound

    def _merge(self, schema: dict[str, Any], spread: dict[str, Any]) -> None:
        shared = set(schema["properties"]) & set(spread.get("properties", {}))
        if spread.get("type") != "object" or shared:
            raise RegistrationError(
                "Arguments[...] takes a model with named fields, none of them named like another argument"
                + (f"; these are: {', '.join(sorted(shared))}." if shared else ".")
            )
        schema["properties"] = {**spread.get("properties", {}), **schema["properties"]}
        required = [*spread.get("required", ()), *schema.get("required", ())]
        if required:
            schema["required"] = required
        own = {"type", "properties", "required", "description"}
        schema |= {keyword: value for keyword, value in spread.items() if keyword not in own}


class _Field:
    """One argument: its type, its default, and how it is called on the wire."""

    __slots__ = ("_given", "info", "kind", "parameter", "wire_name")

    def __init__(self, parameter: Parameter) -> None:
        annotation, default = parameter.annotation, parameter.default
        if isinstance(default, FieldInfo):  # `x: int = Field(ge=1)`, as FastMCP and FastAPI users write it
            annotation, default = Annotated[annotation, default], _EMPTY
        self.parameter = parameter
        self.kind = annotation
        self._given = default
        infos = [item for item in getattr(annotation, "__metadata__", ()) if isinstance(item, FieldInfo)]
        self.info: FieldInfo | None = infos[-1] if infos else None
        alias = next((info.alias for info in infos if info.alias), None)
        self.wire_name = alias or parameter.name

    @property
    def required(self) -> bool:
        return self._given is _EMPTY and not self._has_field_default and not allows_none(self.kind)

    @property
    def fills(self) -> bool:
        """Whether a value must be passed although the caller left it out."""
        return self._given is _EMPTY and not self.required

    @property
    def _has_field_default(self) -> bool:
        return self.info is not None and (
            self.info.default is not PydanticUndefined or self.info.default_factory is not None
        )

    def default(self) -> Any:
        """Return the value to pass."""
        return self.info.get_default(call_default_factory=True) if self._has_field_default and self.info else None

    def describe(self, schema: dict[str, Any], descriptions: Mapping[str, str]) -> None:
        """Add what only the signature and the docstring know."""
        text = descriptions.get(self.parameter.name)
        if text and "description" not in schema:
            schema["description"] = text
        if self._given is not _EMPTY and self._given is not None:
            schema["default"] = to_jsonable_python(self._given, by_alias=True)


def _typed_dict(fields: list[_Field], *, forbid: bool) -> Any:
    members = {field.parameter.name: field.kind if field.required else NotRequired[field.kind] for field in fields}
    make: Any = TypedDict  # made at run time, which type checkers don't follow
    kind = make("Arguments", members)
    kind.__pydantic_config__ = ConfigDict(extra="forbid" if forbid else "ignore")
    return kind


def _mend_whole_numbers(value: Any, error: ValidationError) -> Any:
    """Return the value with 1 for each 1.0 where an integer is wanted, or None if there is none.

    JSON has no integers of its own: by JSON Schema, 1.0 is one.
    """
    places = [
        details["loc"]
        for details in error.errors(include_url=False, include_context=False)
        if details["type"] == "int_type" and isinstance(details["input"], float) and details["input"].is_integer()
    ]
    if not places:
        return None
    from copy import deepcopy  # noqa: PLC0415 - rarely needed

    mended = deepcopy(value)
    for place in places:
        _make_whole(mended, place)
    return mended


def _make_whole(value: Any, place: tuple[int | str, ...]) -> None:
    """Turn the float at a place into an integer. Names in the place that are not in the data belong to pydantic."""
    for index, step in enumerate(place):
        reachable = isinstance(value, dict) and step in value
        reachable = reachable or (isinstance(value, list) and isinstance(step, int) and step < len(value))
        if not reachable:
            continue
        member = value[step]
        if isinstance(member, float) and index >= len(place) - 2:
            value[step] = int(member)
            return
        value = member
