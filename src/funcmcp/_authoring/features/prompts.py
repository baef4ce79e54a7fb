"""Prompts from Python functions: `make_prompt`, and the decorator `prompt` for methods.

Source: 2026-07-28 "server/prompts".
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp._authoring.calling.completers import completers_of
from funcmcp._authoring.calling.function_call import FunctionCall
from funcmcp._authoring.calling.prompt_call import PROMPT_CALL, PromptSettings, json_examples
from funcmcp._authoring.features.decorators import FeatureKind, decorate
from funcmcp._authoring.features.options import FeatureOptions, checked_options
from funcmcp._authoring.features.registration_checks import feature_definition, feature_members, named_function
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.features import Prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from funcmcp._authoring.calling.prompt_call import PromptCall
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments

F = TypeVar("F", bound="Callable[..., Any] | functools.partialmethod[Any]")


class PromptOptions(FeatureOptions, total=False):
    """The options of a prompt.

    Attributes:
        completions: Functions that complete arguments, by the argument's name. Each gets the text so far and, if it
            takes a second argument, a dict of the other arguments. Enums, literals and booleans need no function.
        unknown_arguments: What happens to arguments that the prompt does not have, as for tools.
    """

    completions: Mapping[str, Callable[..., Any]]
    unknown_arguments: UnknownArguments | None


def make_prompt(
    function: Callable[..., Any], options: PromptOptions, services: Services, *, owner: type | None = None
) -> Prompt:
    """Return a prompt that calls a function.

    Args:
        function: Returns a text, a content block, a `Message`, a list of these, or a `PromptResult`.
        options: Options that replace or complete the function's signature and docstring.
        services: Types that are registered here are injected. They may still be registered later.
        owner: The class that is constructed for each call, if the function is one of its methods.

    Raises:
        RegistrationError: The function can't be a prompt, or an option is not valid.
    """
    options = checked_options(options, PromptOptions)
    feature = named_function("prompt", function, options, services, owner)
    rules = services.argument_rules.with_options(feature.name, options)
    settings = PromptSettings(lambda: describe().get("description"), rules.unknown)
    call: PromptCall = FunctionCall(feature, PROMPT_CALL, settings)
    describe = functools.cache(lambda: _definition(call, options))
    return Prompt(
        name=call.name,
        describe=describe,
        handler=call.run,
        **feature_members(call, options, services),
        completers=completers_of(call, options.get("completions", {}), call.signature.defaults, services),
        input_schema=call.input_schema,
    )


PROMPT = FeatureKind(make_prompt, PromptOptions)


@overload
@public("funcmcp")
def prompt(function: F, /) -> F: ...


@overload
@public("funcmcp")
def prompt(name: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...


@public("funcmcp")
def prompt(function: Any = None, /, **options: Any) -> Any:
    """Mark a method as a prompt of its class. Add the class, or an object of it, with ``mcp.add(...)``."""
    return decorate(function, options, PROMPT)


def _with_example(description: str, example: str) -> str:
    """Return the description of an argument with a sentence about its JSON, because its definition has no schema."""
    sentence = f"JSON such as {example}."
    if not description:
        return sentence
    return f"{description.rstrip().removesuffix('.')}. {sentence}"


def _definition(call: PromptCall, options: PromptOptions) -> dict[str, Any]:
    """Return the prompt's definition in the newest revision's shape."""
    schema = call.input_schema()
    required = schema.get("required", ())
    examples = json_examples(call)
    arguments = []
    for name, argument_schema in schema.get("properties", {}).items():
        argument = {"name": name}
        for member in ("title", "description"):
            if member in argument_schema:
                argument[member] = argument_schema[member]
        if name in examples:
            argument["description"] = _with_example(argument.get("description", ""), examples[name])
        argument["required"] = name in required
        arguments.append(argument)
    description = options.get("description")
    if description is None:
        description = call.signature.description(schema)
    return feature_definition(call, options, description, {"arguments": arguments or None})
