"""Completers: functions of an author, and the choices that an annotation names.

Source: 2026-07-28 "server/utilities/completion".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.calling.function_call import FeatureFunction, FunctionCall
from funcmcp._authoring.signatures.choices import choices_of
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.signatures.signature import Signature
    from funcmcp._protocol.completion import Completion
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Completer

_MAX_PARAMETERS = 2


class CompletionArguments(NamedTuple):
    """What a completer gets.

    Attributes:
        text: The text that the user has typed so far.
        resolved: The arguments that already have a value, texts by name.
    """

    text: str
    resolved: Mapping[str, str]


class CompleterCall(FunctionCall[CompletionArguments, "Completion"]):
    """Calls a completer."""

    async def complete(self, context: RequestContext, text: str, resolved: Mapping[str, str]) -> Completion:
        """Return the completions of a text: a `Completer`."""
        return await self.run(context, CompletionArguments(text, resolved))

    def _new_reader(self) -> Callable[[CompletionArguments], dict[str, Any]]:
        parameters = [parameter.name for parameter in self.plan.arguments]
        if not 0 < len(parameters) <= _MAX_PARAMETERS:
            raise TypeError(
                f"{self.name} must take one or two arguments: the text to complete, and a dict of the other arguments."
            )

        def read(arguments: CompletionArguments) -> dict[str, Any]:
            values = (arguments.text, dict(arguments.resolved))
            return dict(zip(parameters, values, strict=False))

        return read

    def _new_renderer(self) -> Callable[[Any], Completion]:
        return self._rendered

    def _rendered(self, value: Any) -> Completion:
        from funcmcp._protocol.completion import Completion  # noqa: PLC0415 - few servers complete values

        completion = value if isinstance(value, Completion) else Completion(value)
        if isinstance(completion.values, str) or not isinstance(completion.values, Iterable):
            raise TypeError(f"{self.name} must return a list of strings or a Completion, not {type(value).__name__}.")
        texts = list(completion.values)
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"{self.name} must return strings, not {type(text).__name__}.")
        return Completion(texts, completion.total, completion.has_more)


def completers_of(
    functions: Mapping[str, Callable[..., Any]],
    *,
    feature: str,
    signature: Signature,
    names: Collection[str],
    services: Services,
) -> dict[str, Completer]:
    """Return the completers of a feature's arguments: those of their annotations, replaced by the author's functions.

    Args:
        functions: The author's functions, by the name of the argument that they complete. Each gets the text so far,
            and, if it takes a second argument, a dict of the arguments that already have a value. It returns strings
            or a `Completion`.
        feature: The feature's name, for errors.
        signature: The signature of the feature's function. Enums, literals and booleans in it name their values.
        names: The names of the arguments.
        services: Types that are registered here are injected into the functions.

    Raises:
        RegistrationError: A function has the name of an argument that does not exist.
    """
    completers: dict[str, Completer] = {}
    for name, annotation in (signature.try_hints() or {}).items():
        choices = choices_of(annotation)
        if choices and name != "return":
            completers[name] = _choice_completer(choices)
    for name, function in functions.items():
        if name not in names:
            raise RegistrationError(
                f"{feature} has no argument {name!r} to complete. Its arguments: {', '.join(names) or 'none'}."
            )
        call = CompleterCall(FeatureFunction(f"{feature}'s completion of {name}", function, services))
        completers[name] = call.complete
    return completers


def _choice_completer(choices: Collection[str]) -> Completer:
    """Return a completer that offers the choices that begin with the text, whatever its case."""

    async def complete(_context: RequestContext, text: str, _resolved: Mapping[str, str]) -> Completion:
        from funcmcp._protocol.completion import Completion  # noqa: PLC0415 - as above

        prefix = text.casefold()
        return Completion([choice for choice in choices if choice.casefold().startswith(prefix)])

    return complete
