"""Prompts from Python functions: `make_prompt`, and the marker `prompt` for methods.

Source: 2026-07-28 "server/prompts".
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp.authoring.calling.arguments import input_schema, optional_of, reader_of, text_parts_of
from funcmcp.authoring.calling.completers import choices_of, completers_of, own_completers
from funcmcp.authoring.calling.feature_context import PromptContext
from funcmcp.authoring.calling.function_call import FunctionCall
from funcmcp.authoring.features.decorators import decorate
from funcmcp.authoring.features.permissions import AccessOptions, access_of
from funcmcp.authoring.features.registration_checks import (
    check_common,
    check_parameters,
    feature_name,
    is_interactive,
    shown_errors_of,
)
from funcmcp.authoring.signatures.annotations import union_members, without_marks
from funcmcp.authoring.signatures.docstring import description, descriptions_in, parameter_descriptions
from funcmcp.authoring.signatures.naming import title_of
from funcmcp.authoring.signatures.signature import EMPTY, Signature, function_name
from funcmcp.authoring.values.content import Content, Message, PromptResult, icon_list
from funcmcp.authoring.values.sdk_results import converted
from funcmcp.protocol.codec import encode, encode_text
from funcmcp.protocol.errors import InvalidParams, ToolError
from funcmcp.server.catalog.features import EncodedResult, Prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from funcmcp.authoring.calling.arguments import Part, Reader
    from funcmcp.authoring.calling.services import Services
    from funcmcp.authoring.features.permissions import AccessKeywords
    from funcmcp.authoring.values.content import Icon
    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.options import ShowErrors

    class PromptKeywords(AccessKeywords, total=False):
        """The options of a prompt as keywords; see `PromptOptions`."""

        name: str
        title: str
        description: str
        icons: Sequence[Icon | Mapping[str, Any]]
        meta: Mapping[str, Any]
        timeout: float | None
        show_errors: ShowErrors | None
        completions: Mapping[str, Callable[..., Any]]


F = TypeVar("F", bound="Callable[..., Any]")

_TEXTS = frozenset({EMPTY, Any, object, str})
_NUMBERS = frozenset({int, float, Decimal})


@dataclass(frozen=True, slots=True)
class PromptOptions(AccessOptions):
    """What an author may say of a prompt beside its function.

    Attributes:
        name: instead of the function's name in snake_case.
        title: A name for people. By default it is the words of the name.
        description: Replaces the docstring.
        icons: `Icon` objects, or dicts as the specification has them.
        meta: a JSON object that is sent as ``_meta``.
        timeout: seconds after which it is cancelled; None for no limit.
        show_errors: Exceptions whose text clients get: True, False or types; None as the server's option says.
        completions: functions that complete arguments, by name. They get what has been written, and, if they take a
            second argument, the other arguments that are known. Enums, literals and booleans complete by themselves.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    icons: Sequence[Icon | Mapping[str, Any]] = ()
    meta: Mapping[str, Any] | None = None
    timeout: float | None = 60.0
    show_errors: ShowErrors | None = None
    completions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def make_prompt(
    function: Callable[..., Any], options: PromptOptions, services: Services, *, owner: type | None = None
) -> Prompt:
    """Make a prompt of a function.

    Args:
        function: returns a text, a content block, a `Message`, a list of these, or a `PromptResult`.
        options: what is not to be taken from the function.
        services: types registered here are injected.
        owner: the class that is constructed for each call, if the function is a method of it.

    Raises:
        RegistrationError: the function can't be a prompt.
    """
    name = feature_name(function, options.name, "prompt")
    check_common(name, options)
    signature = Signature(function, bound=owner is not None)
    check_parameters(name, signature, services)
    call = FunctionCall(name, function, signature, services=services, context=PromptContext, owner=owner)
    writing = _Writing(call, lambda: describe().get("description"))
    describe = functools.cache(lambda: _definition(name, function, options, writing))
    return Prompt(
        name=name,
        describe=describe,
        handler=writing.run,
        interactive=is_interactive(signature),
        timeout=options.timeout,
        access=access_of(name, options),
        shown_errors=shown_errors_of(name, options),
        completers={
            **own_completers(signature),
            **completers_of(options.completions, signature.names(), name, services),
        },
    )


@overload
def prompt(function: F, /) -> F: ...


@overload
def prompt(name: str | None = None, /, **options: Unpack[PromptKeywords]) -> Callable[[F], F]: ...


def prompt(function: Any = None, /, **options: Any) -> Any:
    """Mark a method as a prompt of its class; add the class, or an object of it, with ``mcp.add(...)``."""
    return decorate(function, options, lambda chosen: functools.partial(make_prompt, options=PromptOptions(**chosen)))


class _Writing:
    """Runs a prompt's function: texts in, messages out."""

    def __init__(self, call: FunctionCall, description: Callable[[], str | None]) -> None:
        self._call = call
        self._description = description
        self._render: Callable[[Any], dict[str, Any] | EncodedResult] = _rendered
        self._read: Reader | None = None
        self._kept_parts: list[Part] | None = None
        self._as_json: dict[str, str] = {}
        self._blank: frozenset[str] = frozenset()
        self._choices: dict[str, dict[str, Any]] = {}
        self._known: frozenset[str] = frozenset()
        self._direct = False

    async def run(self, context: RequestContext, arguments: dict[str, str]) -> dict[str, Any] | EncodedResult:
        """Make the messages: a `PromptHandler`."""
        read, call = self._read or self._prepare(), self._call
        if not self._known.issuperset(arguments):
            unknown = next(name for name in arguments if name not in self._known)
            raise InvalidParams(f"{call.name} has no argument {unknown[:128]!r}.")
        try:
            kwargs = read(self._values(arguments) if self._as_json or self._choices or self._blank else arguments)
        except ToolError as error:
            raise InvalidParams(str(error)) from None
        if self._direct:
            return self._render(await (call.function(**kwargs) if call.is_async else call.call(call.function, kwargs)))
        make = functools.partial(PromptContext, context, call.name, arguments)
        return await call.run(context, kwargs, make_context=make, render=self._render)

    def schema(self) -> dict[str, Any]:
        """Return the arguments as a JSON schema."""
        call = self._call
        return input_schema(self._parts(), call.name, parameter_descriptions(call.function))

    def _parts(self) -> list[Part]:
        if self._kept_parts is None:
            self._kept_parts = text_parts_of(self._call.plan.arguments, self._call.name)
        return self._kept_parts

    def _prepare(self) -> Reader:
        arguments = self._call.plan.arguments
        self._known, self._direct = frozenset(p.name for p in arguments), self._call.is_direct
        self._as_json = {p.name: _example(p.annotation) for p in arguments if _is_structured(p.annotation)}
        choices = {p.name: choices_of(p.annotation) for p in arguments}
        self._choices = {name: found for name, found in choices.items() if found}
        left_out = optional_of(self._parts())
        self._blank = frozenset(p.name for p in arguments if p.name in left_out and not _is_text(p.annotation))
        description = self._description()
        if description:
            self._render = functools.partial(_rendered, description=description, start=_start_of(description))
        self._read = reader_of(self._parts(), lax=True)
        return self._read

    def _values(self, arguments: dict[str, str]) -> dict[str, Any]:
        return {name: self._value(name, text) for name, text in arguments.items() if text or name not in self._blank}

    def _value(self, name: str, text: str) -> Any:
        """Return an argument as its annotation can be read from: a choice, a text, or an object or array as JSON."""
        if name not in self._as_json:
            return self._choices[name].get(text, text) if name in self._choices else text
        from pydantic_core import from_json  # noqa: PLC0415 - loaded with the codec

        try:
            return from_json(text, allow_inf_nan=False)
        except ValueError:
            raise ToolError(f"{name}: must be JSON such as {self._as_json[name]}") from None


def _is_structured(annotation: Any) -> bool:
    """Tell whether a value of a type is an object or an array in JSON, so that its text has to be JSON.

    Of a union it must be a value of every member but None: a text that may be a text is one.
    """
    members = [without_marks(member) for member in union_members(without_marks(annotation))]
    return all(_is_structure(member) for member in members if member is not type(None))


def _is_text(annotation: Any) -> bool:
    """Tell whether an empty text may be a value of a type, rather than a field that somebody left empty."""
    if "" in choices_of(annotation):
        return True
    members = [without_marks(member) for member in union_members(without_marks(annotation))]
    kinds = [getattr(member, "__origin__", member) for member in members if not choices_of(member)]
    return not all(
        isinstance(kind, type) and kind not in _TEXTS and not issubclass(kind, str | bytes) for kind in kinds
    )


def _example(annotation: Any) -> str:
    """Return what a value of an array's or an object's type looks like as JSON."""
    bare = without_marks(union_members(without_marks(annotation))[0])
    origin = getattr(bare, "__origin__", bare)
    if not issubclass(origin, Collection) or issubclass(origin, Mapping) or hasattr(origin, "__total__"):
        return '{"name": "value"}'
    members = [without_marks(member) for member in getattr(bare, "__args__", ())[:1]]
    if members and members[0] in _NUMBERS:
        return "[1, 2]"
    return '[{"name": "value"}]' if members and _is_structured(members[0]) else '["one", "two"]'


def _is_structure(bare: Any) -> bool:
    origin = getattr(bare, "__origin__", bare)
    fields = any(hasattr(bare, mark) for mark in ("model_fields", "__dataclass_fields__", "__total__", "_fields"))
    if bare in _TEXTS or not isinstance(origin, type):
        return False
    return fields or (issubclass(origin, Collection) and not issubclass(origin, str | bytes))


def _start_of(description: str) -> bytes:
    return b'{"description":%b,' % encode_text(description)


def _rendered(value: Any, *, description: str | None = None, start: bytes = b"{") -> dict[str, Any] | EncodedResult:
    """Return what a function returned as a GetPromptResult; raise ValueError for what JSON can't say.

    Args:
        value: What the function returned.
        description: The prompt's own description, which a result without one gets.
        start: The JSON before the messages: a brace, and the description if there is one.
    """
    if isinstance(value, str):
        text = encode_text(value)
        return EncodedResult(b'%b"messages":[{"role":"user","content":{"type":"text","text":%b}}]}' % (start, text))
    value = converted(value)
    whole = value if isinstance(value, PromptResult) else PromptResult(_listed(value))
    result: dict[str, Any] = {"messages": [_message(item) for item in _listed(whole.messages)]}
    description = description if whole.description is None else whole.description
    if description is not None:
        result["description"] = description
    if whole.meta is not None:
        result["_meta"] = dict(whole.meta)
    encode(result)  # refuses what JSON can't say
    return result


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _message(item: Any) -> dict[str, Any]:
    item = converted(item)
    if isinstance(item, Message):
        return item.wire
    if isinstance(item, str | Content):
        return Message(item).wire
    raise TypeError(f"A prompt returns texts, content blocks and Message objects, not {type(item).__name__}.")


def _definition(name: str, function: Any, options: PromptOptions, writing: _Writing) -> dict[str, Any]:
    """Return the prompt's definition in the newest revision's shape."""
    schema = writing.schema()
    required = schema.get("required", ())
    arguments = [
        {
            "name": argument,
            **({"title": about["title"]} if "title" in about else {}),
            **({"description": about["description"]} if "description" in about else {}),
            "required": argument in required,
        }
        for argument, about in schema.get("properties", {}).items()
    ]
    text = description(function, descriptions_in(schema)) if options.description is None else options.description
    members = {
        "name": name,
        "title": options.title or title_of(options.name, function_name(function)) or name,
        "description": text or None,
        "arguments": arguments or None,
        "icons": icon_list(options.icons) or None,
        "_meta": None if options.meta is None else dict(options.meta),
    }
    return {member: value for member, value in members.items() if value is not None}
