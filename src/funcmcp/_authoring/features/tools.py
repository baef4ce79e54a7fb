"""Tools from Python functions: `make_tool`, and the decorator `tool` for methods."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from funcmcp._authoring.calling.tool_call import HandwrittenSchemas, left_out_of, output_schema_of, tool_call
from funcmcp._authoring.features.decorators import FeatureKind, decorate
from funcmcp._authoring.features.options import FeatureOptions, checked_options
from funcmcp._authoring.features.registration_checks import (
    check_return_type,
    feature_definition,
    feature_members,
    mirrored_arguments,
    named_function,
)
from funcmcp._authoring.features.ui import page_meta
from funcmcp._objects.public_names import public
from funcmcp._server.calls.feature import TimeLimit
from funcmcp._server.catalog.features import Tool
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.limits import MIN_RESULT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from funcmcp._auth.grants import Grant
    from funcmcp._authoring.calling.confirmation import ConfirmText, Otherwise, PersonsConfirmation
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.calling.tool_call import ToolCall
    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments
    from funcmcp._authoring.features.ui import UI
    from funcmcp._server.catalog.features import ToolHandler
    from funcmcp._server.catalog.task_options import TaskOptions

F = TypeVar("F", bound="Callable[..., Any] | functools.partialmethod[Any]")


class ToolOptions(FeatureOptions, total=False):
    """The options of a tool.

    Attributes:
        input_schema: A hand-written schema of the arguments, which is sent unchanged. The function may then take all
            arguments as one dict.
        output_schema: A hand-written schema of the structured content. With None, the tool has no output schema.
        read_only: Whether the tool leaves everything unchanged.
        destructive: Whether the tool may destroy something.
        idempotent: Whether a second call with the same arguments changes nothing more.
        open_world: Whether the tool interacts with systems outside the server.
        lax: Whether arguments are converted: ``"5"`` to 5, ``"true"`` to True, and strings with JSON to objects and
            arrays. By default the server's `lax` applies.
        unknown_arguments: What happens to arguments that the function does not have: ``"refuse"`` makes the call an
            error, ``"ignore"`` drops them, except for names that are close to that of an argument that the call does
            not have, and ``"drop"`` drops all of them. By default the server's option applies. A hand-written
            `input_schema` decides itself.
        ui: The page that shows the tool's result in clients with MCP Apps: its ``ui://`` URI, or a `UI`.
        task: Whether calls become tasks: ``"optional"`` (for clients that have tasks), ``"required"`` (other clients
            get an error), or a `TaskOptions` with more options. Without this option calls never become tasks.
        result_characters: Characters of a result that a model reads, at least 2,000. A longer result is shortened; see
            docs/guides/large_results.md. None never shortens it. By default `Limits.result_characters` applies.
        confirm: The question to a person before the tool runs, such as ``"Delete {name}?"`` with names of arguments, or
            a function of some of the arguments that returns it, or None if the call needs no question.
        confirm_otherwise: What happens to the calls of clients that can't ask a person: ``"refuse"``, the default, or
            ``"run"`` without a question.
        grant: What the tool needs at another service for the user of a call: a `funcmcp.auth.Grant`, or a list of them.
            The user is asked for it before the tool runs. The tool gets the token by `Context.grant_token`.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    lax: bool | None
    unknown_arguments: UnknownArguments | None
    ui: str | UI
    task: Literal["optional", "required"] | TaskOptions | None
    result_characters: int | None
    confirm: ConfirmText | None
    confirm_otherwise: Otherwise
    grant: Grant | Sequence[Grant] | None


MYPY = False
"""mypy takes it for true. It suggests the nearest option by itself, and other type checkers get the overloads below."""


class ThisOptionIsCalled_read_only:  # noqa: N801 - the type checker shows it
    """What a type checker reports for ``readonly=``, which is not an option of a tool."""


class TheseOptionsAre_read_only_destructive_idempotent_open_world_title:  # noqa: N801 - as above
    """What a type checker reports for ``annotations=``, which is not an option of a tool."""


_ATTEMPTS = 3
"""How often the task of a tool that may be called twice is started, if the process stops while it runs."""

_HINTS = {
    "title": "title",
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
"""Options that are sent as ToolAnnotations, with their names there."""


def make_tool(
    function: Callable[..., Any], options: ToolOptions, services: Services, *, owner: type | None = None
) -> Tool:
    """Return a tool that calls a function.

    Args:
        function: A function, plain or async, a bound method, a callable object or a `functools.partial`.
        options: Options that replace or complete the function's signature and docstring.
        services: Types that are registered here are injected. They may still be registered later.
        owner: The class that is constructed for each call, if the function is one of its methods.

    Raises:
        RegistrationError: The function can't be a tool, or an option is not valid.
    """
    options = checked_options(options, ToolOptions)
    feature = named_function("tool", function, options, services, owner)
    name = feature.name
    without_output = "output_schema" in options and options["output_schema"] is None
    schemas = HandwrittenSchemas(options.get("input_schema"), options.get("output_schema"), without_output)
    if schemas.input is not None or schemas.output is not None:
        _check_schemas(name, schemas)
    call = tool_call(feature, schemas, services.argument_rules.with_options(name, options))
    members = feature_members(call, options, services)
    if schemas.output is None:
        check_return_type(name, call)
    task = _task_options(options)
    if task is not None and members["version"] is not None:
        raise RegistrationError(f"{name} has version= and task=. A tool with versions can't run as a task.")
    time_limit = members["time_limit"]
    if task is not None and "timeout" not in options:
        members["time_limit"] = TimeLimit(task.ttl, "ttl of TaskOptions")
    confirmation = _confirmation(call, options, services)
    handler: ToolHandler = call.run
    if confirmation is not None:
        from funcmcp._authoring.calling.confirmation import confirmed  # noqa: PLC0415 - few servers have confirm=

        handler = confirmed(call, confirmation)
        members["interactive"] = True
    if options.get("grant") is not None:
        handler = _with_grants(name, handler, call, options, services)
        members["interactive"] = True
    return Tool(
        name=name,
        describe=functools.cache(lambda: _definition(call, options, schemas)),
        handler=handler,
        mirrored=mirrored_arguments(name, call.signature, schemas.input),
        **members,
        task=task,
        task_time_limit=time_limit if "timeout" in options else None,
        check=call.read,
        confirmation=confirmation,
        left_out=functools.partial(left_out_of, call),
        result_characters=result_characters_of(name, options),
        annotations=annotations_of(options),
    )


TOOL = FeatureKind(make_tool, ToolOptions)


@overload
@public("funcmcp")
def tool(function: F, /) -> F: ...


@overload
@public("funcmcp")
def tool(name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...


if not MYPY:

    @overload
    def tool(name: str | None = None, /, *, readonly: object, **options: object) -> ThisOptionIsCalled_read_only: ...

    @overload
    def tool(
        name: str | None = None, /, *, annotations: object, **options: object
    ) -> TheseOptionsAre_read_only_destructive_idempotent_open_world_title: ...


@public("funcmcp")
def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a method as a tool of its class. Add the class, or an object of it, with ``mcp.add(...)``.

    The method itself does not change.

    Example:
        ```python
        class OrderTools:
            def __init__(self, orders: OrderService) -> None:
                self.orders = orders

            @tool(read_only=True)
            async def get_order(self, order_id: str) -> Order: ...

        mcp.add(OrderTools)
        ```
    """
    return decorate(function, options, TOOL)


def _check_schemas(name: str, schemas: HandwrittenSchemas) -> None:
    """Find simple mistakes in hand-written schemas; raise RegistrationError."""
    from funcmcp._authoring.schemas.handwritten_schema import check_schema  # noqa: PLC0415 - few tools have them

    if schemas.input is not None:
        check_schema(schemas.input, f"input_schema of {name}", objects_only=True)
    if schemas.output is not None:
        check_schema(schemas.output, f"output_schema of {name}", objects_only=False)


def _compile_schemas(name: str, schemas: HandwrittenSchemas) -> None:
    """Compile hand-written schemas; raise RegistrationError if one is not valid."""
    from funcmcp._authoring.schemas.handwritten_schema import schema_checker  # noqa: PLC0415 - as above

    if schemas.input is not None:
        schema_checker(schemas.input, f"input_schema of {name}")
    if schemas.output is not None:
        schema_checker(schemas.output, f"output_schema of {name}")


def _task_options(options: ToolOptions) -> TaskOptions | None:
    """Return how calls become tasks; None if they never do."""
    task = options.get("task")
    if task is None:
        return None
    from dataclasses import replace  # noqa: PLC0415 - few servers have tools with task=

    from funcmcp._server.catalog.task_options import TaskOptions  # noqa: PLC0415 - as above

    if not isinstance(task, TaskOptions):
        task = TaskOptions(task)
    if task.attempts is not None:
        return task
    may_be_called_twice = options.get("idempotent") or options.get("read_only")
    return replace(task, attempts=_ATTEMPTS if may_be_called_twice else 1)


def result_characters_of(name: str, options: ToolOptions) -> int | None:
    """Return the characters of a tool's result: 0 for no limit, and None for that of the server."""
    if "result_characters" not in options:
        return None
    characters = options["result_characters"]
    if characters is None:
        return 0
    if type(characters) is not int or characters < MIN_RESULT_CHARACTERS:
        raise RegistrationError(
            f"result_characters of {name} must be an integer, {MIN_RESULT_CHARACTERS:,} or more, or None; "
            f"got {characters!r:.40}."
        )
    return characters


def _confirmation(call: ToolCall, options: ToolOptions, services: Services) -> PersonsConfirmation | None:
    """Return the confirmation that a tool asks for; None if it asks for none."""
    text = options.get("confirm")
    if text is None:
        if "confirm_otherwise" in options:
            raise RegistrationError(f"confirm_otherwise of {call.name} has no effect without confirm=.")
        return None
    from funcmcp._authoring.calling.confirmation import PersonsConfirmation  # noqa: PLC0415 - few servers have confirm=

    return PersonsConfirmation(call, text, options.get("confirm_otherwise", "refuse"), services)


def _with_grants(
    name: str, handler: ToolHandler, call: ToolCall, options: ToolOptions, services: Services
) -> ToolHandler:
    """Return the handler of a tool with grants."""
    from funcmcp._authoring.calling.grants import checked_grants, granted  # noqa: PLC0415 - few servers have grants

    grants = checked_grants(name, options["grant"])
    services.needed_grants += [(name, grant) for grant in grants]
    return granted(handler, call.read, grants, services)


def _definition(call: ToolCall, options: ToolOptions, schemas: HandwrittenSchemas) -> dict[str, Any]:
    """Return the tool's definition in the newest revision's shape."""
    if schemas.input is not None or schemas.output is not None:
        _compile_schemas(call.name, schemas)  # No client should read a schema that is not valid.
    input_schema = call.input_schema()
    description = options.get("description")
    if description is None:
        description = call.signature.description(input_schema)
    task = _task_options(options)
    execution = None
    if task is not None:
        execution = {"taskSupport": task.mode}
    return feature_definition(
        call,
        options,
        description,
        {
            "inputSchema": input_schema,
            "outputSchema": output_schema_of(call),
            "annotations": annotations_of(options) or None,
            "execution": execution,
            "_meta": page_meta(options.get("ui")) or None,
        },
    )


def annotations_of(options: ToolOptions) -> dict[str, Any]:
    """Return the ToolAnnotations that options set."""
    chosen: dict[str, Any] = {**options}
    if chosen.get("confirm") is not None and chosen.get("destructive") is None and not chosen.get("read_only"):
        chosen["destructive"] = True
    return {hint: chosen[option] for option, hint in _HINTS.items() if chosen.get(option) is not None}
