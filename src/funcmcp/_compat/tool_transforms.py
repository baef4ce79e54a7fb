"""`Tool.from_tool` of FastMCP: a tool that changes how clients see another one, its arguments included."""

from __future__ import annotations

import copy
import re
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.components import Component, Tool
from funcmcp._compat.content import ToolResult
from funcmcp._compat.errors import ValidationError
from funcmcp._compat.functions import takes_any_name, without_spread
from funcmcp._compat.listed_components import ListedTool
from funcmcp._compat.schema_merging import described, merged, schema_of_arguments
from funcmcp._objects.mappings import only, without
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


NOT_SET: Any = ...
"""Stands for no change: None is a value."""

_KEPT_META = ("fastmcp", "ui")
"""Members of ``_meta`` that a changed tool keeps: what they say of the tool is still so."""

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
        ValueError: A change is for an argument that does not exist, or a hidden argument has no value.
    """

    def __init__(self, parent: Any, changes: Mapping[str, ArgTransform]) -> None:
        self._parent = parent
        self._hidden: dict[str, ArgTransform] = {}
        self._names: dict[str, str] = {}
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        schema = copy.deepcopy(parent.parameters)
        self._definitions: dict[str, Any] = schema.get("$defs", {})
        properties = schema.get("properties", {})
        unknown = sorted(changes.keys() - properties.keys())
        if unknown:
            raise ValueError(
                f"Unknown arguments in transform_args: {', '.join(unknown)}. Parent tool `{parent.name}` has: "
                f"{', '.join(sorted(properties))}"
            )
        required = schema.get("required", ())
        for name, argument in properties.items():
            self._add(name, argument, changes.get(name, ArgTransform()), is_required=name in required)
        self.schema: dict[str, Any] = schema_of_arguments(self._properties, self._required, self._definitions)

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
        visible_name = visible_name_of(name, change)
        self._names[visible_name] = name
        self._properties[visible_name] = self._changed(schema, change)
        if change.required is True or (is_required and change.default is NOT_SET):
            self._required.append(visible_name)

    def _changed(self, schema: dict[str, Any], change: ArgTransform) -> dict[str, Any]:
        """Return the schema of an argument with a change."""
        if change.description is None:
            schema.pop("description", None)
        elif change.description is not NOT_SET:
            schema["description"] = change.description
        if change.required is True:
            schema.pop("default", None)
        elif change.default is not NOT_SET:
            schema["default"] = change.default
        if change.type is not NOT_SET:
            schema = {**self._schema_of(change.type), **described(schema)}
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

    async def __call__(self, **arguments: Any) -> ToolResult:
        """Call the other tool.

        Raises:
            TypeError: An argument is unknown or missing.
            ValidationError: The other tool does not take a value. The text has the names that clients see.
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
        try:
            result: ToolResult = await self._parent.run(changed)
        except ValidationError as error:
            raise ValidationError(self._with_visible_names(str(error))) from error
        return result

    def _with_visible_names(self, text: str) -> str:
        """Return an error of the other tool with the names that clients see."""
        visible = {name: visible for visible, name in self._names.items()}
        return re.sub(r"^\w+", lambda match: visible.get(match[0], match[0]), text, flags=re.MULTILINE)


def visible_name_of(name: str, change: ArgTransform) -> str:
    """Return the name of an argument that clients see."""
    if isinstance(change.name, str):
        return change.name
    return name


def _check_names(properties: Mapping[str, Any], changes: Mapping[str, ArgTransform]) -> None:
    """Raise ValueError if two arguments of a tool would have one name."""
    names: list[str] = []
    for name in properties:
        change = changes.get(name, ArgTransform())
        if not change.hide:
            names.append(visible_name_of(name, change))
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValueError(f"Multiple arguments would be mapped to the same names: {', '.join(duplicates)}")


class _TransformFunction(Tool):
    """The function of a changed tool as a tool, which gets arguments as they are."""

    takes_any_arguments: bool = True

    def __init__(self, fn: Callable[..., Any], name: str, **options: Any) -> None:
        super().__init__(without_spread(fn), name, **options)


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
        own = None if transform_fn is None else _TransformFunction(transform_fn, name="function")
        if output_schema is NOT_SET:
            output_schema = _inherited_output_schema(own, parent)
        schema = self.forwarding_fn.schema
        if own is not None:
            takes_all = takes_any_name(transform_fn)
            schema = _schema_with_function(own, schema, self.transform_args, takes_all=takes_all)
        _check_names(parent.parameters.get("properties", {}), self.transform_args)
        chosen = {key: value for key, value in changes.items() if value is not NOT_SET}
        if not chosen.get("tags", True):
            del chosen["tags"]
        meta = _changed_meta(parent.meta, changes.get("meta", NOT_SET))
        options = {**_options_of(parent), **chosen, "output_schema": output_schema, "meta": meta}
        super().__init__(None, name or parent.name, parameters=schema, **options)
        self._function: Tool | None = None
        if transform_fn is not None:
            self._function = _TransformFunction(transform_fn, self.name, output_schema=output_schema)

    @classmethod
    def from_tool(cls, tool: Any, name: str | None = None, **changes: Any) -> Any:
        """Return a tool that changes how clients see another one; the arguments are those of the class."""
        return cls(tool, name, **changes)

    @property
    def description(self) -> str | None:
        """The description: the option, or that of the other tool."""
        return self.options.get("description")

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the tool outside of its server, as `Tool.run` does."""
        properties = self.parameters.get("properties", {})
        defaults = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
        complete = copy.deepcopy(without(defaults, *arguments)) | arguments
        outer = _current.get()
        _current.set(self)
        try:
            if self._function is None:
                result = await self.forwarding_fn(**complete)
            else:
                result = await self._function.run(complete)
        finally:
            _current.set(outer)
        return self._with_own_schema(result)

    def _with_own_schema(self, result: ToolResult) -> ToolResult:
        """Return a result without structured content if the schema of this tool is not one of objects."""
        schema = self.output_schema
        if schema is None or schema == self.parent_tool.output_schema or "x-fastmcp-wrap-result" in schema:
            return result
        from funcmcp._compat.output_schemas import is_of_objects  # noqa: PLC0415 - loads pydantic

        if is_of_objects(schema) or result.structured_content is None:
            return result
        return ToolResult(list(result.content), None, result.meta, is_error=result.is_error)


def _options_of(parent: Any) -> dict[str, Any]:
    """Return the options of a tool that a changed one inherits."""
    if isinstance(parent, Component):
        inherited = without(
            parent.options, "enabled", "exclude_args", "input_schema", "run_in_thread", "structured_output", "timeout"
        )
    else:
        inherited = {name: parent.get(name) for name in ("title", "icons", "annotations") if parent.get(name)}
        if parent.source.component is not None:  # without what its server has added
            inherited = only(parent.source.component.options, ("title", "icons", "annotations"))
        inherited["tags"] = parent.tags
    return {**inherited, "description": parent.description}


def _changed_meta(meta: Any, change: Any) -> dict[str, Any] | None:
    """Return the ``_meta`` of a changed tool, which keeps the members that describe the tool itself."""
    if change is NOT_SET:
        return dict(meta or {}) or None
    kept = {name: dict(meta[name]) for name in _KEPT_META if isinstance((meta or {}).get(name), dict) and meta[name]}
    if change is None:
        return kept or None
    merged_meta = dict(change)
    for name, members in kept.items():
        own = change.get(name)
        merged_meta[name] = {**members, **own} if isinstance(own, dict) else members
    return merged_meta


def _inherited_output_schema(own: Tool | None, parent: Any) -> dict[str, Any] | None:
    """Return the output schema of a changed tool: that of its function, or of the other tool.

    A function that returns complete results has none.
    """
    inherited: dict[str, Any] | None = parent.output_schema
    if own is None:
        return inherited
    schema = own.output_schema
    if schema is not None:
        return schema
    hint = Signature(own.fn).try_hints().get("return")
    is_complete = isinstance(hint, type) and issubclass(hint, ToolResult)
    return None if is_complete else inherited


def _schema_with_function(
    own: Tool, schema: dict[str, Any], changes: Mapping[str, ArgTransform], *, takes_all: bool
) -> dict[str, Any]:
    """Return the schema of the arguments of a tool with a function.

    Args:
        own: The function as a tool.
        schema: The schema of the changed arguments of the other tool.
        changes: The changes.
        takes_all: Whether the function has a parameter for arguments of any name.

    Raises:
        ValueError: The function lacks a parameter for an argument that clients see.
    """
    properties = own.parameters.get("properties", {})
    missing = sorted(schema["properties"].keys() - properties.keys())
    if missing and not takes_all:
        raise ValueError(
            f"Function missing parameters required after transformation: {', '.join(missing)}. Function declares: "
            f"{', '.join(sorted(properties))}"
        )
    visible = {visible_name_of(name, change): change for name, change in changes.items() if not change.hide}
    typed = {name for name, change in visible.items() if change.type is not NOT_SET}
    required = [name for name, change in visible.items() if change.required is True]
    return merged(own.parameters, schema, typed, required)


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
