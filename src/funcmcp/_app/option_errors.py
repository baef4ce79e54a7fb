"""Errors for wrong arguments of `MCPServer`: they name the option to use."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from funcmcp._server.limits import Limits
from funcmcp._server.options import ProtocolOptions, ServerInfo
from funcmcp._transports.http.options import HTTPOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., None]")

_TYPES = {"info": ServerInfo, "http": HTTPOptions, "protocol": ProtocolOptions, "limits": Limits}


def explains_options(init: F) -> F:
    """Make the constructor of `MCPServer` raise TypeError with the right option for a wrong one.

    The errors are for options that do not exist, for values that would fail later or in each request, and for more
    positional arguments than the name.
    """
    valid = [name for name in inspect.signature(init).parameters if name not in {"self", "name"}]

    @wraps(init)
    def checked(self: object, *args: Any, **options: Any) -> None:
        if len(args) > 1:
            raise TypeError(
                f"MCPServer takes only its name by position. Write MCPServer({args[0]!r}, instructions={args[1]!r})."
            )
        for option in options:
            if option not in {"name", *valid}:
                raise TypeError(f"MCPServer has no option {option!r}. {_advice(option, valid)}")
        for option, expected in _TYPES.items():
            _check_type(option, options.get(option), expected)
        _check_name(args[0] if args else options.get("name"))
        _check_auth(options.get("auth"))
        _check_tasks(options.get("tasks"))
        _check_middleware(options.get("middleware", ()))
        init(self, *args, **options)

    return cast("F", checked)


def all_are_parameters(method: Any, options: Iterable[str]) -> bool:
    """Return whether a method has a parameter for each of these options."""
    code = method.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return True  # it checks them itself
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return all(option in names for option in options)


def unknown_option(method: Any, options: Iterable[str]) -> TypeError:
    """Return the error for an option that a method does not have."""
    from funcmcp._text import other_frameworks as other  # noqa: PLC0415 - only errors need it

    valid = [name for name in inspect.signature(method).parameters if name != "self"]
    option = next(option for option in options if option not in valid)
    advice = other.METHOD_OPTIONS.get(method.__name__.removesuffix("_async"), {}).get(option)
    return TypeError(
        f"mcp.{method.__name__} has no option {option!r}. " + (advice or f"Valid options: {', '.join(valid)}.")
    )


def _advice(option: str, valid: Sequence[str]) -> str:
    """Return what to use in place of an option that does not exist."""
    from funcmcp._text import other_frameworks as other  # noqa: PLC0415 - only errors need it

    for parameter, group in _TYPES.items():
        if group is not Limits and option in {field.name for field in fields(group)}:
            return f"Use {parameter}={group.__name__}({option}=...)."
    if option in other.SERVER_OPTIONS:
        return f"Use {other.SERVER_OPTIONS[option]}."
    return other.SERVER_OPTIONS_WITHOUT_COUNTERPART.get(option, f"Valid options: {', '.join(valid)}.")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f'MCPServer needs a name, such as MCPServer("shop"); got {name!r:.60}.')


def _check_type(option: str, value: object, expected: type) -> None:
    if value is not None and not isinstance(value, expected):
        raise TypeError(f"{option} must be {expected.__name__}(...); got {type(value).__name__}.")


def _check_auth(auth: object) -> None:
    if isinstance(auth, type):
        raise TypeError(f"auth must be an authenticator, not a class. Write auth={auth.__name__}(...).")
    if auth is None or callable(auth):
        return
    from funcmcp._auth.policy import Auth  # noqa: PLC0415 - only servers with authentication need it

    if not isinstance(auth, Auth):
        type_name = type(auth).__name__  # The value may be a secret, which must not get into a log.
        raise TypeError(f"auth must be an authenticator, such as APIKeys({{...}}), or Auth(...); got {type_name}.")


def _check_tasks(tasks: object) -> None:
    if tasks is None or tasks == "memory":
        return
    if isinstance(tasks, type) or not hasattr(tasks, "bind"):
        name = getattr(tasks, "__name__", type(tasks).__name__)
        raise TypeError(f"tasks must be a store of tasks, such as SQLiteTasks('tasks.db'); got {name}.")


def _check_middleware(middleware: object) -> None:
    if not isinstance(middleware, Sequence):
        raise TypeError(f"middleware must be a list of async functions; got {type(middleware).__name__}.")
