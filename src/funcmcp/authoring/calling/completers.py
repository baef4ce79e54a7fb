"""Completers: an author's own functions, and those that an annotation gives by itself.

Source: 2026-07-28 "server/utilities/completion".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from funcmcp.authoring.calling.feature_context import ResourceContext
from funcmcp.authoring.calling.function_call import FunctionCall
from funcmcp.authoring.signatures.annotations import without_marks
from funcmcp.authoring.signatures.signature import Signature
from funcmcp.server.catalog.features import Completion
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp.authoring.calling.services import Services
    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.catalog.features import Completer

_MOST_PARAMETERS = 2


def completers_of(
    functions: Mapping[str, Callable[..., Any]], names: Collection[str], feature: str, services: Services
) -> dict[str, Completer]:
    """Make completers of an author's functions.

    Args:
        functions: by the name of what they complete. Each gets the text so far, and, if it takes a second argument,
            the other arguments that are known, texts by name; it returns texts or a `Completion`.
        names: what can be completed.
        feature: the feature's name, for errors.
        services: types registered here are injected.

    Raises:
        RegistrationError: there is nothing of a name to complete.
    """
    unknown = [name for name in functions if name not in names]
    if unknown:
        raise RegistrationError(f"{feature} has no argument {unknown[0]!r} to complete.")
    return {
        name: _completer(function, f"{feature}'s completion of {name}", services)
        for name, function in functions.items()
    }


def _completer(function: Callable[..., Any], name: str, services: Services) -> Completer:
    call = FunctionCall(name, function, Signature(function), services=services, context=ResourceContext)

    def render(value: Any) -> Completion:
        found = value if isinstance(value, Completion) else Completion(value)
        if isinstance(found.values, str) or not isinstance(found.values, Iterable):
            raise TypeError(f"{name} must return a list of texts or a Completion, not {type(value).__name__}.")
        values = list(found.values)
        if not all(isinstance(text, str) for text in values):
            raise TypeError(f"{name} must return texts.")
        return Completion(values, found.total, found.has_more)

    async def complete(context: RequestContext, value: str, others: Mapping[str, str]) -> Completion:
        parameters = [parameter.name for parameter in call.plan.arguments]
        if not 0 < len(parameters) <= _MOST_PARAMETERS:
            raise TypeError(f"{name} takes the text so far, and perhaps the other arguments as a second parameter.")
        kwargs = dict(zip(parameters, (value, dict(others)), strict=False))
        return await call.run(context, kwargs, make_context=lambda: ResourceContext(context), render=render)

    return complete


def own_completers(signature: Signature) -> dict[str, Completer]:
    """Return completers of the parameters whose annotation names all values: enums, literals and booleans."""
    hints = signature.try_hints() or {}
    found = {name: choices_of(hint) for name, hint in hints.items() if name != "return"}
    return {name: _choosing(choices) for name, choices in found.items() if choices}


def choices_of(annotation: Any) -> dict[str, Any]:
    """Return all values of a type by their texts, if it names them: an enum, a literal, a boolean; empty if not."""
    bare = without_marks(annotation)
    if bare is bool:
        return {"true": True, "false": False}
    if get_origin(bare) is Literal:
        return {_text(value): value for value in get_args(bare)}
    if isinstance(bare, type) and issubclass(bare, Enum):
        return {_text(member.value): member.value for member in bare}
    return {}


def _text(value: Any) -> str:
    """Return a value as it is written in a prompt's argument or a URI."""
    if isinstance(value, Enum):
        return _text(value.value)
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _choosing(choices: Collection[str]) -> Completer:
    async def complete(_context: RequestContext, value: str, _others: Mapping[str, str]) -> Completion:
        begun = value.casefold()
        return Completion([choice for choice in choices if choice.casefold().startswith(begun)])

    return complete
