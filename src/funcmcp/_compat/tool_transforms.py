"""`Tool.from_tool` of FastMCP: a tool that changes how clients see another one, its arguments included."""

from __future__ import annotations

import copy
import inspect
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._compat.components import Component, ListedTool, Tool
from funcmcp._compat.content import ToolResult
from funcmcp._objects.mappings import only, without
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class _NotSet:
    """The type of `NOT_SET`."""

    def __repr__(self) -> str:
        return "no change"


NOT_SET: Any = _NotSet()
"""Stands for no change: None is a value."""

_DESCRIBING = frozenset({"default", "description", "examples", "title"})
"""Members of an argument's schema that do not say which values are valid."""

_current: ContextVar[TransformedTool | None] = ContextVar("funcmcp_compat_transformed_tool", default=None)


@public("funcmcp.compat")
@dataclass
class ArgTransform:
    """How clients see an argument of a tool.

    Attributes:
        name: The name.
        description: The description; None removes it.
        default: The value of calls without the argument. A hidden argument always has it.
        default_factory: Returns the value of a hidden argument for each call.
        type: The type.
        hide: Whether clients do not see the argument.
        required: True if calls must have the argument, also if the tool has a default.
        examples: Examples of values.

    Raises:
        ValueError: Two attributes contradict each other.
    """

    _: KW_ONLY
    name: Any = NOT_SET
    description: Any = NOT_SET
    default: Any = NOT_SET
    default_factory: Any = NOT_SET
    type: Any = NOT_SET
    hide: bool = False
    required: Any = NOT_SET
    examples: Any = NOT_SET

    def __post_init__(self) -> None:
        """Check the combination."""
        has_default, has_factory = self.default is not NOT_SET, self.default_factory is not NOT_SET
        if has_default and has_factory:
            raise ValueError(
                "Cannot specify both 'default' and 'default_factory' in ArgTransform. Use either 'default' for a "
                "static value or 'default_factory' for a callable."
            )
        if has_factory and not self.hide:
            raise ValueError(
                "default_factory can only be used with hide=True. Visible parameters must use static 'default' values "
                "since JSON schema cannot represent dynamic factories."
            )
        if self.required is True and (has_default or has_factory):
            raise ValueError(
                "Cannot specify 'required=True' with 'default' or 'default_factory'. Required parameters cannot have "
                "defaults."
            )
        if self.hide and self.required is True:
            raise ValueError(
                "Cannot specify both 'hide=True' and 'required=True'. Hidden parameters cannot be required since "
                "clients cannot provide them."
            )
        if self.required is False:
            raise ValueError("Cannot specify 'required=False'. Set a default value instead.")


class Forwarding:
    """Calls the other tool with the arguments of the changed one.

    Args:
        parent: The other tool.
        changes: The changes by the names of its arguments.

    Attributes:
        schema: The schema of the arguments that clients see.

    Raises:
        ValueError: A change is for an argument that does not exist, two arguments would have one name, or a hidden
            argument has no value.
    """

    def __init__(self, parent: Any, changes: Mapping[str, ArgTransform]) -> None:
        self._parent = parent
        self._hidden: dict[str, ArgTransform] = {}
        self._names: dict[str, str] = {}
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._definitions: dict[str, Any] = copy.deepcopy(parent.parameters.get("$defs", {}))
        properties = copy.deepcopy(parent.parameters.get("properties", {}))
        _check_names(parent.name, properties, changes)
        required = parent.parameters.get("required", ())
        for name, schema in properties.items():
            self._add(name, schema, changes.get(name, ArgTransform()), is_required=name in required)
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": self._properties,
            "required": self._required,
            "additionalProperties": False,
        }
        if not self._required:
            del self.schema["required"]
        if self._definitions:
            self.schema["$defs"] = self._definitions

    def _add(self, name: str, schema: dict[str, Any], change: ArgTransform, *, is_required: bool) -> None:
        if change.hide:
            has_value = change.default is not NOT_SET or change.default_factory is not NOT_SET
            if is_required and not has_value:
                raise ValueError(
                    f"Hidden parameter '{name}' has no default value in parent tool and no default or default_factory "
                    "provided in ArgTransform. Either provide a default or default_factory in ArgTransform or don't "
                    "hide required parameters."
                )
            if has_value:
                self._hidden[name] = change
            return
        visible_name = name if change.name is NOT_SET or change.name is None else change.name
        self._names[visible_name] = name
        self._properties[visible_name] = self._changed(schema, change)
        if change.required is True or (is_required and change.default is NOT_SET):
            self._required.append(visible_name)

    def _changed(self, schema: dict[str, Any], change: ArgTransform) -> dict[str, Any]:
        """Return the schema of an argument with a change."""
        if change.type is not NOT_SET:
            schema = {**only(schema, _DESCRIBING), **self._schema_of(change.type)}
        if change.description is None:
            schema.pop("description", None)
        elif change.description is not NOT_SET:
            schema["description"] = change.description
        if change.required is True:
            schema.pop("default", None)
        if change.default is not NOT_SET:
            schema["default"] = change.default
        if change.examples is not NOT_SET:
            schema["examples"] = change.examples
        return schema

    def _schema_of(self, kind: Any) -> dict[str, Any]:
        from pydantic import TypeAdapter  # noqa: PLC0415 - few changes have a type

        schema = TypeAdapter(kind).json_schema()
        for name, definition in schema.pop("$defs", {}).items():
            if self._definitions.setdefault(name, definition) != definition:
                raise ValueError(
                    f"$defs collision for '{name}': an ArgTransform introduces a definition with the same name as an "
                    "existing $defs entry but a different schema. Rename one of the colliding types to avoid the "
                    "conflict."
                )
        return schema

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments of clients, with the defaults in the schema."""
        defaults = {name: schema["default"] for name, schema in self._properties.items() if "default" in schema}
        return defaults | dict(arguments)

    async def __call__(self, **arguments: Any) -> ToolResult:
        """Call the other tool.

        Raises:
            TypeError: An argument is unknown or missing.
        """
        unknown = sorted(arguments.keys() - self._names.keys())
        if unknown:
            raise TypeError(f"Got unexpected keyword argument(s): {', '.join(unknown)}")
        missing = sorted(set(self._required) - arguments.keys())
        if missing:
            raise TypeError(f"Missing required argument(s): {', '.join(missing)}")
        changed = {self._names[name]: value for name, value in arguments.items()}
        for name, change in self._hidden.items():
            changed[name] = change.default_factory() if change.default is NOT_SET else change.default
        result: ToolResult = await self._parent.run(changed)
        return result


def _check_names(tool: str, properties: Mapping[str, Any], changes: Mapping[str, ArgTransform]) -> None:
    unknown = sorted(changes.keys() - properties.keys())
    if unknown:
        raise ValueError(
            f"Unknown arguments in transform_args: {', '.join(unknown)}. Parent tool `{tool}` has: "
            f"{', '.join(sorted(properties))}"
        )
    names: list[str] = []
    for name in properties:
        change = changes.get(name, ArgTransform())
        if not change.hide:
            names.append(name if change.name is NOT_SET else change.name)
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValueError(f"Multiple arguments would be mapped to the same names: {', '.join(duplicates)}")


@public("funcmcp.compat")
class TransformedTool(Tool):
    """A tool that changes how clients see another one.

    Args:
        tool: The other tool, or a function.
        name: The name. By default it is that of the other tool.
        transform_fn: A function that runs in place of the other tool, which it calls with `forward`.
        transform_args: Changes of arguments by their names.
        changes: Options of a tool, which replace those of the other one.

    Raises:
        ValueError: The changes do not fit the other tool, or the function.
    """

    def __init__(
        self,
        tool: Any,
        name: str | None = None,
        *,
        transform_fn: Callable[..., Any] | None = None,
        transform_args: Mapping[str, ArgTransform] | None = None,
        output_schema: Any = NOT_SET,
        **changes: Any,
    ) -> None:
        parent: Any = tool if isinstance(tool, Component | ListedTool) else Tool.from_function(tool)
        self.parent_tool: Any = parent
        self.transform_args: dict[str, ArgTransform] = dict(transform_args or {})
        self.forwarding_fn: Forwarding = Forwarding(parent, self.transform_args)
        self._inner = None if transform_fn is None else _Inner(transform_fn, self.forwarding_fn, self.transform_args)
        schema = self.forwarding_fn.schema if self._inner is None else self._inner.schema
        if output_schema is NOT_SET:
            inherited = parent.output_schema
            output_schema = inherited if self._inner is None else self._inner.output_schema(inherited)
        chosen = {key: value for key, value in changes.items() if value is not NOT_SET}
        if not chosen.get("tags", True):
            del chosen["tags"]
        self._schema, self._output_schema = schema, output_schema
        options = {**_options_of(parent), **chosen, "output_schema": output_schema}
        super().__init__(None, name or parent.name, parameters=schema, **options)

    @property
    def parameters(self) -> dict[str, Any]:
        """The input schema."""
        return self._schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The output schema; None if it has none."""
        schema: dict[str, Any] | None = self._output_schema
        return schema

    @property
    def description(self) -> str | None:
        """The description: the option, or that of the other tool."""
        return self.options.get("description")

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the tool outside of its server, as `Tool.run` does."""
        complete = self.forwarding_fn.with_defaults(arguments)
        if self._inner is None:
            return await self.forwarding_fn(**complete)
        outer = _current.get()
        _current.set(self)
        try:
            return await self._inner.run(self.name, complete)
        finally:
            _current.set(outer)


def _options_of(parent: Any) -> dict[str, Any]:
    """Return the options of a tool that a changed one inherits."""
    if isinstance(parent, Component):
        inherited = without(parent.options, "enabled", "exclude_args", "input_schema", "structured_output", "timeout")
    else:
        inherited = {name: parent.get(name) for name in ("title", "icons", "annotations") if parent.get(name)}
    return {**inherited, "description": parent.description}


class _Inner:
    """The function of a changed tool.

    Args:
        function: The function.
        forwarding: How the other tool is called.
        changes: The changes of arguments.

    Raises:
        ValueError: The function lacks a parameter for an argument that clients see.
    """

    def __init__(
        self, function: Callable[..., Any], forwarding: Forwarding, changes: Mapping[str, ArgTransform]
    ) -> None:
        self._function = function
        parameters = inspect.signature(function).parameters.values()
        self._takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self._tool: Tool | None = None if self._takes_all else Tool.from_function(function, name="function")
        self.schema: dict[str, Any] = forwarding.schema
        if self._tool is not None:
            typed = {change.name for change in changes.values() if change.type is not NOT_SET}
            typed |= {name for name, change in changes.items() if change.type is not NOT_SET}
            self.schema = _merged(self._tool.parameters, forwarding.schema, typed)

    def output_schema(self, inherited: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the output schema of the function; without one that of the other tool, except for a `ToolResult`."""
        hint = inspect.signature(self._function, eval_str=False).return_annotation
        if hint is ToolResult or hint == "ToolResult":
            return None
        own = None if self._tool is None else self._tool.output_schema
        return inherited if own is None else own

    async def run(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Call the function, and return its value as a result."""
        if self._tool is not None:
            return await self._tool.run(arguments)
        value = self._function(**arguments)
        if inspect.isawaitable(value):
            value = await value
        if isinstance(value, ToolResult):
            return value
        constant = Tool(lambda: value, name)
        return await constant.run({})


def _merged(function: dict[str, Any], seen: dict[str, Any], typed: set[Any]) -> dict[str, Any]:
    """Return the schema of a function's arguments with what clients see of them.

    Args:
        function: The schema of the function.
        seen: The schema of the changed arguments of the other tool.
        typed: Arguments whose type a change decides.
    """
    missing = sorted(seen["properties"].keys() - function.get("properties", {}).keys())
    if missing:
        raise ValueError(
            f"Function missing parameters required after transformation: {', '.join(missing)}. Function declares: "
            f"{', '.join(sorted(function.get('properties', {})))}"
        )
    properties = {}
    for name, schema in function.get("properties", {}).items():
        changed = seen["properties"].get(name, {})
        structure = {} if name in typed else without(schema, *_DESCRIBING)
        properties[name] = {**schema, **changed, **structure} if name not in typed else changed
    required = [
        name
        for name in properties
        if name in seen.get("required", ())
        or (name in function.get("required", ()) and "default" not in properties[name])
    ]
    merged = {**function, "properties": properties, "required": required}
    definitions = {**function.get("$defs", {}), **seen.get("$defs", {})}
    if definitions:
        merged["$defs"] = definitions
    return merged if required else without(merged, "required")


@public("funcmcp.compat")
async def forward(**arguments: Any) -> ToolResult:
    """Call the other tool from the function of a `TransformedTool`, with the arguments that clients see.

    Raises:
        RuntimeError: No such function runs.
        TypeError: An argument is unknown or missing.
    """
    return await _running("forward").forwarding_fn(**arguments)


@public("funcmcp.compat")
async def forward_raw(**arguments: Any) -> ToolResult:
    """Call the other tool from the function of a `TransformedTool`, with its own arguments.

    Raises:
        RuntimeError: No such function runs.
    """
    result: ToolResult = await _running("forward_raw").parent_tool.run(arguments)
    return result


def _running(function: str) -> TransformedTool:
    tool = _current.get()
    if tool is None:
        raise RuntimeError(f"{function}() can only be called within a transformed tool")
    return tool
