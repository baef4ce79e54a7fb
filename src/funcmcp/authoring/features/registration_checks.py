"""What is checked of every feature's function and options when it is registered."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from funcmcp.authoring.calling.feature_context import FeatureContext, PromptContext, ResourceContext, ToolContext
from funcmcp.authoring.calling.function_call import special_type
from funcmcp.authoring.features.options import check_option_types
from funcmcp.authoring.signatures.annotations import never_json, union_members, without_marks
from funcmcp.authoring.signatures.naming import is_name, is_text, snake_case
from funcmcp.authoring.signatures.signature import EMPTY, function_name
from funcmcp.authoring.values.content import icon_list
from funcmcp.authoring.values.handwritten_schema import check_json
from funcmcp.server.catalog.registry import RegistrationError
from funcmcp.server.options import shown_types

if TYPE_CHECKING:
    from funcmcp.authoring.calling.services import Services
    from funcmcp.authoring.signatures.signature import Signature

_SIMPLE: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float), str: (str,), bytes: (bytes,)}
"""Types whose defaults are checked at registration, with the types of the values that fit."""
_CONTEXTS = (ToolContext.__name__, ResourceContext.__name__, PromptContext.__name__)


def feature_name(function: Any, given: str | None, kind: str) -> str:
    """Return a feature's name: the one given, the function's in snake_case, or as it is.

    Raises:
        RegistrationError: The name is not allowed, or the function can't be a feature.
    """
    if isinstance(function, type):
        raise RegistrationError(f"{function.__name__} is a class; add its marked methods with mcp.add(...).")
    own = function_name(function)
    if given is None:
        name = next((name for name in (snake_case(own), own) if is_name(name)), None)
        allowed = "1 to 128 letters, digits, '_', '-' and '.'"
    elif kind == "tool":
        name = given if isinstance(given, str) and is_name(given) else None
        allowed = "1 to 128 letters, digits, '_', '-' and '.'"
    else:
        name = given if isinstance(given, str) and is_text(given) else None
        allowed = "a text without line breaks and control characters"
    if name is None:
        rejected = snake_case(own) if given is None else given
        raise RegistrationError(f"{rejected!r} can't be a {kind}'s name; give one with name=: {allowed}.")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise RegistrationError(f"{name} is a generator; return a list instead of yielding.")
    return name


def check_common(name: str, options: Any) -> None:
    """Check the options that every feature has; raise RegistrationError."""
    check_option_types(name, options)
    if options.meta is not None:
        if not isinstance(options.meta, dict):
            raise RegistrationError(f"meta of {name} must be a dict, not {type(options.meta).__name__}.")
        check_json(options.meta, f"meta of {name}")
    if options.icons:
        check_json(icon_list(options.icons), f"icons of {name}")
    timeout = options.timeout
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise RegistrationError(f"timeout of {name} must be a number of seconds above 0, or None.")


def shown_errors_of(name: str, options: Any) -> tuple[type[BaseException], ...] | None:
    """Return the types of exceptions that a feature shows, None for the server's; raise RegistrationError."""
    if options.show_errors is None:
        return None
    try:
        return shown_types(options.show_errors, f"show_errors of {name}")
    except ValueError as error:
        raise RegistrationError(str(error)) from None


def check_parameters(name: str, signature: Signature, services: Services) -> None:
    """Refuse types of parameters that can't be JSON, as far as that can be told at once; raise RegistrationError."""
    for parameter, hint in (signature.try_hints() or {}).items():
        words = None if parameter == "return" or without_marks(hint) in services else never_json(hint)
        if words:
            raise RegistrationError(f"The parameter {parameter!r} of {name} is {words}.")
        _check_default(name, parameter, hint, signature.names().get(parameter, EMPTY))


def _check_default(name: str, parameter: str, hint: Any, default: Any) -> None:
    """Refuse a default that is not of a simple annotated type; None stands for an argument that is left out."""
    members = [without_marks(member) for member in union_members(without_marks(hint))]
    if default is EMPTY or default is None or not all(member in _SIMPLE for member in members):
        return
    if type(default) in _SIMPLE and not any(isinstance(default, _SIMPLE[member]) for member in members):
        types = " | ".join(member.__name__ for member in members)
        raise RegistrationError(
            f"The parameter {parameter!r} of {name} has the default {default!r}, which is not of its type {types}. "
            "Change the default or the annotation."
        )


def is_interactive(signature: Signature) -> bool:
    """Tell whether a function takes a context; of a hint that can't be resolved yet, its text has to tell."""
    hints = signature.try_hints()
    if hints is None:
        written = [str(hint) for hint in signature.raw_annotations().values()]
        return any(context in hint for hint in written for context in _CONTEXTS)
    kinds = [special_type(hint) for name, hint in hints.items() if name != "return"]
    return any(kind is not None and issubclass(kind, FeatureContext) for kind in kinds)
