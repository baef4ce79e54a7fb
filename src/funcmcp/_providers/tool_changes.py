"""`ToolTransform`: tools with other names, descriptions and arguments; and `Wrap`, a function around tools.

How it works: a changed tool has the arguments that clients see, and its handler writes them as those of the tool
behind it. `_Arguments` knows both: the schema, the mirrored headers and the errors speak of what clients see. Schemas
are made when a list is built, so a name in a change is checked then, and when the tool is first called.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import KW_ONLY, replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.unknown_arguments import NOT_AN_ARGUMENT, not_an_argument
from funcmcp._authoring.features.options import tags_of
from funcmcp._authoring.features.registration_checks import feature_name
from funcmcp._objects.definitions import options
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import WrongArguments
from funcmcp._providers.selection import with_members
from funcmcp._server.catalog.features import Tool
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.transformed import Transform

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Confirmation, Confirmed
    from funcmcp._server.catalog.transformed import AnyFeature, Transformed
    from funcmcp._server.handlers.tools import ToolResult


class _Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "no value"


MISSING = _Missing()
"""Stands for a default that was not given: None is a value."""


@public("funcmcp.transforms")
@options
class ArgumentChange:
    """How clients see an argument of a tool.

    Attributes:
        name: Its name. None leaves it unchanged.
        description: Its description. None leaves it unchanged.
        default: The value of the argument in calls without it. A hidden argument always has it.
        hide: Whether clients do not see the argument, and can't set it.
        required: Whether calls must have the argument, also if the tool has a default for it.
        examples: Examples of values, which the schema shows.

    Raises:
        ValueError: The argument would be required, and hidden or with a default.
    """

    name: str | None = None
    _: KW_ONLY
    description: str | None = None
    default: Any = MISSING
    hide: bool = False
    required: bool = False
    examples: list[Any] | None = None

    def __post_init__(self) -> None:
        """Check the combination."""
        if self.required and (self.hide or self.default is not MISSING):
            raise ValueError("A required argument can't be hidden, and has no default. Remove required=.")


@public("funcmcp.transforms")
@options
class ToolChange:
    """How clients see a tool. What is None remains as it is.

    Attributes:
        name: Its name.
        title: Its name for people.
        description: Its description.
        tags: Its tags, in place of the existing ones.
        meta: Members that are added to its ``_meta``.
        annotations: Members that are added to its annotations, such as ``{"readOnlyHint": True}``.
        enabled: Whether clients see it as long as no rule of `MCPServer.enable` or `disable` applies.
        version: Its version.
        arguments: Changes of its arguments, by the names that they have.
    """

    name: str | None = None
    _: KW_ONLY
    title: str | None = None
    description: str | None = None
    tags: Collection[str] | None = None
    meta: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    enabled: bool | None = None
    version: str | None = None
    arguments: Mapping[str, ArgumentChange] | None = None


@public("funcmcp.transforms")
class ToolTransform(Transform):
    """Changes tools: ``ToolTransform({"run_query": ToolChange("search", arguments={"q": ArgumentChange("query")})})``.

    Args:
        changes: The changes by the names that the tools have.

    Raises:
        TypeError: A change is not a `ToolChange`, or that of an argument is not an `ArgumentChange`.
        ValueError: Two tools, or two arguments of one tool, would get the same name.
        RegistrationError: A new name or a tag is not allowed.
    """

    def __init__(self, changes: Mapping[str, ToolChange]) -> None:
        self._changes = dict(changes)
        self._sources: dict[str, str] = {}
        for source, change in self._changes.items():
            _check_change(source, change)
            name = feature_name(_unused, change.name or source, "tool")
            if name in self._sources:
                raise ValueError(f"{self._sources[name]!r} and {source!r} would both be called {name!r}.")
            self._sources[name] = source
            if change.tags is not None:
                tags_of(name, {"tags": change.tags})
            _check_names(source, change.arguments or {})

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the changed tool."""
        if not isinstance(feature, Tool) or feature.name not in self._changes:
            return feature
        change = self._changes[feature.name]
        tool = _with_arguments(feature, change.arguments) if change.arguments else feature
        members = {"name": change.name, "title": change.title, "description": change.description}
        tool = with_members(tool, **{name: value for name, value in members.items() if value is not None})
        if change.meta is not None:
            tool = replace(tool, describe=functools.partial(_with_meta, tool, change.meta))
        if change.annotations is not None:
            annotations = {**tool.describe().get("annotations", {}), **change.annotations}
            tool = replace(with_members(tool, annotations=annotations), annotations=annotations)
        if change.version is not None and feature.task is not None:
            raise RegistrationError(f"{feature.name} has task=. A tool with versions can't run as a task.")
        changes: dict[str, Any] = {"enabled": change.enabled, "version": change.version}
        if change.tags is not None:
            changes["tags"] = frozenset(change.tags)
        return replace(tool, **{name: value for name, value in changes.items() if value is not None})

    def source_key(self, kind: type, key: str) -> str:
        """Return the name before the change."""
        return self._sources.get(key, key) if kind is Tool else key


@public("funcmcp.transforms")
class Wrap(Transform):
    """Puts a function around tools, which gets the arguments and decides what the tool gets and what clients get.

    Args:
        function: An async function ``(arguments, forward)``. ``await forward(arguments)`` runs the tool and returns its
            `CallToolResult`. The function returns this result, or what a tool's function may return.
        names: Names of the tools. By default all tools.
        tags: Tags of which the tool must have at least one.

    Raises:
        TypeError: The function is not callable, or a condition is not a collection of strings.

    Example:
        ```python
        async def in_upper_case(arguments, forward):
            result = await forward({"text": arguments["text"].strip()})
            return result.text.upper()


        mcp.add_transform(Wrap(in_upper_case, names={"shorten"}))
        ```
    """

    def __init__(
        self,
        function: Callable[..., Any],
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
    ) -> None:
        from funcmcp._server.catalog.visibility import visibility_rule  # noqa: PLC0415 - loaded with every server

        if not callable(function):
            raise TypeError(f"Wrap takes an async function (arguments, forward); got {type(function).__name__}.")
        self._function = function
        self._rule = visibility_rule(names, tags, {"tool"}, shows=True)

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the tool with the function around it."""
        if not isinstance(feature, Tool) or not self._rule.matches(feature):
            return feature
        return replace(feature, handler=_wrapped(feature, self._function))


def _wrapped(tool: Tool, function: Callable[..., Any]) -> Any:
    async def call(context: RequestContext, arguments: dict[str, Any]) -> Any:
        from funcmcp._protocol.objects import CallToolResult  # noqa: PLC0415 - few tools are wrapped
        from funcmcp._server.catalog.features import JSONResult, RawResponse  # noqa: PLC0415 - as above

        async def forward(changed: dict[str, Any]) -> CallToolResult:
            result = await tool.handler(context, changed)
            if isinstance(result, RawResponse):
                result = _result_in(result.message)
            return CallToolResult(result.result() if isinstance(result, JSONResult) else result)

        returned = function(arguments, forward)
        if not inspect.isawaitable(returned):
            raise TypeError(f"The function around {tool.name} must be async. Write async def in place of def.")
        value: Any = await returned
        return dict(value) if isinstance(value, CallToolResult) else _rendered(tool, value)

    return call


def _result_in(message: dict[str, Any]) -> dict[str, Any]:
    from funcmcp._protocol.errors import MCPError  # noqa: PLC0415 - only tools of other servers respond with a message
    from funcmcp._server.calls.rounds import InputRequired  # noqa: PLC0415 - as above

    error = message.get("error")
    if error is not None:
        raise MCPError(error["code"], error["message"], error.get("data"))
    result: dict[str, Any] = message["result"]
    if result.get("resultType") == "input_required":
        raise InputRequired(result["inputRequests"], result["requestState"])  # the function runs again with the answers
    return result


def _rendered(tool: Tool, value: Any) -> ToolResult:
    """Return the result for a value; raise ValueError if the tool has an output schema, which the value lacks."""
    from funcmcp._authoring.results.tool_results import rendering_of  # noqa: PLC0415 - loads pydantic
    from funcmcp._authoring.signatures.signature import EMPTY  # noqa: PLC0415 - as above
    from funcmcp._server.catalog.features import JSONResult, RawResponse  # noqa: PLC0415 - as above

    result = rendering_of(EMPTY, tool.name).render(value)
    if isinstance(result, RawResponse):
        return result
    as_dict = result.result() if isinstance(result, JSONResult) else result
    if "outputSchema" in tool.describe() and "structuredContent" not in as_dict and not as_dict.get("isError"):
        raise ValueError(
            f"{tool.name} has an output schema. The function around it must return the result of forward, or a "
            "ToolResult with structured content."
        )
    return result


class _ChangedConfirmation:
    """The confirmation of a changed tool: the person sees the arguments that the tool gets.

    Args:
        confirmation: That of the tool behind it.
        arguments: The arguments as clients see them.
    """

    def __init__(self, confirmation: Confirmation, arguments: _Arguments) -> None:
        self.is_required = confirmation.is_required
        self._confirmation = confirmation
        self._arguments = arguments

    async def ask(self, context: RequestContext, arguments: dict[str, Any]) -> Confirmed | None:
        """Ask the person; see `Confirmation.ask`."""
        source_values = self._arguments.read(arguments)
        try:
            return await self._confirmation.ask(context, source_values)
        except WrongArguments as error:
            raise self._arguments.shown(error, arguments) from None


class _Arguments:
    """The arguments of a tool as clients see them.

    Args:
        tool: The tool behind them.
        changes: The changes by the names that the tool has for its arguments.
    """

    def __init__(self, tool: Tool, changes: Mapping[str, ArgumentChange]) -> None:
        self._tool = tool
        self._changes = changes
        self._names = {source: change.name or source for source, change in changes.items() if not change.hide}
        self._sources = {name: source for source, name in self._names.items()}
        self._removed = changes.keys() - self._sources.keys()
        self._defaults = {source: change.default for source, change in changes.items() if change.default is not MISSING}
        self._required = [self._names[source] for source, change in changes.items() if change.required]

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """The input schema; RegistrationError if the tool has other arguments than the changes."""
        schema = dict(self._tool.describe()["inputSchema"])
        properties: dict[str, Any] = schema.get("properties", {})
        required: list[str] = schema.pop("required", [])
        self._check(properties, required)
        shown = [name for name in properties if name not in self._changes or name in self._names]
        schema["properties"] = {self._names.get(name, name): self._property(name, properties[name]) for name in shown}
        still_required = [
            self._names.get(name, name) for name in shown if name in required and name not in self._defaults
        ]
        if still_required or self._required:
            schema["required"] = list(dict.fromkeys([*still_required, *self._required]))
        return schema

    def _check(self, properties: Mapping[str, Any], required: list[str]) -> None:
        """Raise RegistrationError if the changes do not fit the tool."""
        place = f"ToolChange of {self._tool.name}"
        for source, change in self._changes.items():
            if source not in properties:
                raise RegistrationError(f"{place}: the tool has no argument {source!r}.")
            if change.hide and change.default is MISSING and source in required:
                raise RegistrationError(f"{place}: the hidden argument {source!r} is required. Add default=.")
        for name in self._sources:
            if name in properties and name not in self._changes:
                raise RegistrationError(f"{place}: the tool has an argument {name!r} already.")

    def _property(self, source: str, schema: Any) -> Any:
        change = self._changes.get(source)
        if change is None:
            return schema
        changed = {} if schema is True else dict(schema)
        if change.description is not None:
            changed["description"] = change.description
        if change.default is not MISSING:
            changed["default"] = change.default
        if change.required:
            changed.pop("default", None)
        if change.examples is not None:
            changed["examples"] = change.examples
        return changed

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a call's arguments under the names of the tool, with defaults; raise WrongArguments."""
        missing = self.schema["properties"].keys() - arguments.keys()
        wrong = [(name, not_an_argument(name, missing)) for name in arguments if name in self._removed]
        wrong += [(name, "is required") for name in self._required if name not in arguments]
        if wrong:
            raise WrongArguments(wrong)
        read = {self._sources.get(name, name): value for name, value in arguments.items()}
        return {**self._defaults, **read}

    def shown_names(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the names that clients see, if another change gives other ones to those of this change."""
        return {**names, **{source: names.get(name, name) for source, name in self._names.items()}}

    def shown(self, error: WrongArguments, arguments: dict[str, Any]) -> Exception:
        """Return an error of the tool with the names that clients see."""
        missing = self.schema["properties"].keys() - arguments.keys()
        lines: list[tuple[str, str]] = []
        for path, phrase in error.lines:
            end = min((path.find(mark) for mark in ".[" if mark in path), default=len(path))
            source = path[:end]
            if source in self._changes and source not in self._names:
                return ValueError(
                    f"The value of the hidden argument {source!r} of {self._tool.name} is wrong: {phrase}"
                )
            if phrase.startswith(NOT_AN_ARGUMENT):
                lines.append((path, not_an_argument(path, missing)))
            else:
                lines.append((f"{self._names.get(source, source)}{path[end:]}", phrase))
        return WrongArguments(lines)


def _check_change(source: str, change: object) -> None:
    """Raise TypeError if the change of a tool, or of one of its arguments, is not one."""
    if not isinstance(change, ToolChange):
        raise TypeError(f"The change of {source!r} must be a ToolChange(...), not {type(change).__name__}.")
    for name, argument in (change.arguments or {}).items():
        if not isinstance(argument, ArgumentChange):
            raise TypeError(
                f"The change of the argument {name!r} of {source!r} must be an ArgumentChange(...), "
                f"not {type(argument).__name__}."
            )
    for name, value in (change.annotations or {}).items():
        if name.endswith("Hint") and not isinstance(value, bool):
            raise TypeError(f"The annotation {name!r} of {source!r} must be True or False; got {value!r}.")


def _with_arguments(tool: Tool, changes: Mapping[str, ArgumentChange]) -> Tool:
    arguments = _Arguments(tool, changes)
    check, confirmation = tool.check, tool.confirmation

    async def call(context: RequestContext, values: dict[str, Any]) -> Any:
        source_values = arguments.read(values)
        context.shown_names = arguments.shown_names(context.shown_names or {})
        try:
            return await tool.handler(context, source_values)
        except WrongArguments as error:
            raise arguments.shown(error, values) from None

    def check_shown(values: dict[str, Any]) -> object:
        source_values = arguments.read(values)
        try:
            return None if check is None else check(source_values)
        except WrongArguments as error:
            raise arguments.shown(error, values) from None

    names = {source: change.name or source for source, change in changes.items()}
    hidden = {source for source, change in changes.items() if change.hide}
    mirrored = tuple(
        parameter._replace(path=(names.get(parameter.path[0], parameter.path[0]), *parameter.path[1:]))
        for parameter in tool.mirrored
        if parameter.path[0] not in hidden
    )
    return replace(
        tool,
        describe=lambda: {**tool.describe(), "inputSchema": arguments.schema},
        handler=call,
        check=None if check is None else check_shown,
        confirmation=None if confirmation is None else _ChangedConfirmation(confirmation, arguments),
        mirrored=mirrored,
        left_out=lambda: _renamed_omissions(tool, names, hidden),
    )


def _renamed_omissions(tool: Tool, names: Mapping[str, str], hidden: Collection[str]) -> list[Any]:
    """Return what the schema does not say, under the names that clients see."""
    omissions = []
    for omission in tool.left_out():
        path = omission.path
        if path[:2] == ("inputSchema", "properties") and len(path) > 2:  # noqa: PLR2004 - behind the two comes the name
            if path[2] in hidden:
                continue
            omission = omission._replace(path=(*path[:2], names.get(str(path[2]), path[2]), *path[3:]))  # noqa: PLW2901
        omissions.append(omission)
    return omissions


def _with_meta(tool: Tool, meta: Mapping[str, Any]) -> Mapping[str, Any]:
    definition = tool.describe()
    return {**definition, "_meta": {**definition.get("_meta", {}), **meta}}


def _check_names(tool: str, changes: Mapping[str, ArgumentChange]) -> None:
    """Raise ValueError if two arguments would have one name."""
    sources: dict[str, str] = {}
    for source, change in changes.items():
        name = change.name or source
        if not change.hide and name in sources:
            raise ValueError(f"The arguments {sources[name]!r} and {source!r} of {tool} would both be called {name!r}.")
        sources[name] = source


def _unused() -> None:
    """Stand for a function where only a name is checked."""
