"""Completers: functions of an author, and the choices that an annotation names.

Source: 2026-07-28 "server/utilities/completion".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.function_call import Always, CallKind, FeatureFunction, FunctionCall
from funcmcp._authoring.signatures.choices import choices_of
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.calling.function_call import AnyCall
    from funcmcp._authoring.calling.services import Services
    from funcmcp._protocol.completion import Completion
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Completer

    CompleterCall: TypeAlias = "FunctionCall[None, Completion, str, Mapping[str, str]]"

_MAX_PARAMETERS = 2


def _new_reader(call: CompleterCall) -> Callable[[str, Mapping[str, str]], dict[str, Any]]:
    """Return the function that passes the text, and a dict of the arguments that already have a value."""
    parameters = [parameter.name for parameter in call.plan.arguments]
    if not 0 < len(parameters) <= _MAX_PARAMETERS:
        raise TypeError(
            f"{call.name} must take one or two arguments: the text to complete, and a dict of the other arguments."
        )

    def read(text: str, resolved: Mapping[str, str]) -> dict[str, Any]:
        return dict(zip(parameters, (text, dict(resolved)), strict=False))

    return read


def _new_renderer(call: CompleterCall) -> Always[Completion]:
    def render(value: Any) -> Completion:
        from funcmcp._protocol.completion import Completion  # noqa: PLC0415 - few servers complete values

        completion = value if isinstance(value, Completion) else Completion(value)
        if isinstance(completion.values, str) or not isinstance(completion.values, Iterable):
            raise TypeError(f"{call.name} must return a list of strings or a Completion, not {type(value).__name__}.")
        texts = list(completion.values)
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"{call.name} must return strings, not {type(text).__name__}.")
        return Completion(texts, completion.total, completion.has_more)

    return Always(render)


COMPLETER_CALL = CallKind(_new_reader, _new_renderer)


def completers_of(
    call: AnyCall, functions: Mapping[str, Callable[..., Any]], names: Collection[str], services: Services
) -> dict[str, Completer]:
    """Return the completers of a feature's arguments: those of their annotations, replaced by the author's functions.

    Args:
        call: The calls of the feature's function. Enums, literals and booleans in its signature name their values.
        functions: The author's functions, by the name of the argument that they complete. Each gets the text so far,
            and, if it takes a second argument, a dict of the arguments that already have a value. It returns strings
            or a `Completion`.
        names: The names of the arguments.
        services: Types that are registered here are injected into the functions.

    Raises:
        RegistrationError: A function has the name of an argument that does not exist.
    """
    completers: dict[str, Completer] = {}
    types = call.signature.try_types()
    if types is not None:
        for parameter in types.parameters:
            choices = choices_of(parameter.bare)
            if choices:
                completers[parameter.name] = _choice_completer(choices)
    for name, function in functions.items():
        if name not in names:
            raise RegistrationError(
                f"{call.name} has no argument {name!r} to complete. Its arguments: {', '.join(names) or 'none'}."
            )
        completer = FeatureFunction(f"{call.name}'s completion of {name}", function, services)
        completers[name] = FunctionCall(completer, COMPLETER_CALL, None).run
    return completers


def _choice_completer(choices: Collection[str]) -> Completer:
    """Return a completer that offers the choices that begin with the text, whatever its case."""

    async def complete(_context: RequestContext, text: str, _resolved: Mapping[str, str]) -> Completion:
        from funcmcp._protocol.completion import Completion  # noqa: PLC0415 - as above

        prefix = text.casefold()
        return Completion([choice for choice in choices if choice.casefold().startswith(prefix)])

    return complete
