"""Options that tools, resources and prompts share, and the checks of their names and types.

The options of each kind of feature are declared once, as a TypedDict: it types the keyword arguments of decorators, and
functions that create features take the same dict. A wrong type in an option would break every client that reads the
list, so all of them are checked when a feature is registered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from funcmcp._authoring.features.permissions import AccessOptions
from funcmcp._authoring.results.content import Icon, icon_list
from funcmcp._authoring.schemas.json_values import check_json
from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT, TimeLimit
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.options import shown_types
from funcmcp._text.unicode import is_unicode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from funcmcp._server.options import ShowErrors

Options = TypeVar("Options")


class FeatureOptions(AccessOptions, total=False):
    """The options of every feature.

    Attributes:
        name: The feature's name. By default it is the function's name in snake_case.
        title: A name for people. By default it is the name in words.
        description: Replaces the docstring.
        icons: `Icon` objects, or dicts in the specification's form.
        meta: A JSON object that is sent as ``_meta``.
        timeout: Seconds after which a call is cancelled. None sets no limit. The default is 600.
            A tool with `task` has the ttl of its tasks instead.
        max_timeout: Seconds to which `Context.extend` may raise the `timeout`. Without it a call can't be extended.
        show_errors: Exceptions whose text clients get: True, False or types. By default the server's option applies.
        tags: Words by which `MCPServer.enable` and `MCPServer.disable` find the feature. Clients do not get them.
        enabled: Whether clients see the feature. False hides it until `MCPServer.enable` shows it.
        version: The version, such as ``"2"`` or ``"2.1"``. Several features may then have one name or URI: clients get
            the newest version unless they name another one.
    """

    name: str
    title: str
    description: str
    icons: Sequence[Icon | Mapping[str, Any]]
    meta: Mapping[str, Any]
    timeout: float | None
    max_timeout: float
    show_errors: ShowErrors | None
    tags: Collection[str]
    enabled: bool
    version: str | float


_TYPES: dict[str, type] = {
    "title": str,
    "description": str,
    "read_only": bool,
    "destructive": bool,
    "idempotent": bool,
    "open_world": bool,
    "lax": bool,
    "enabled": bool,
}
_TYPE_NAMES: dict[type, str] = {str: "a string", bool: "True or False"}


def checked_options(options: Mapping[str, Any], declaration: type[Options]) -> Options:
    """Return options, whose names a TypedDict declares.

    Raises:
        RegistrationError: An option does not exist.
    """
    valid = declaration.__annotations__
    unknown = sorted(options.keys() - valid.keys())
    if unknown:
        feature = f" of {options['name']!r}" if "name" in options else ""
        from funcmcp._text.other_frameworks import FEATURE_OPTIONS  # noqa: PLC0415 - only errors need it

        hint = FEATURE_OPTIONS.get(unknown[0])
        if hint is not None and unknown[0] not in valid:
            raise RegistrationError(f"Unknown option {unknown[0]!r}{feature}. {hint}")
        raise RegistrationError(
            f"Unknown option {', '.join(map(repr, unknown))}{feature}. Valid options: {', '.join(valid)}."
        )
    return cast("Options", options)


def check_common_options(name: str, options: Mapping[str, Any]) -> None:
    """Check the options that several kinds of features have.

    Args:
        name: The feature's name.
        options: The feature's options.

    Raises:
        RegistrationError: An option has a wrong type or value. The text names the option and the feature.
    """
    for option, required_type in _TYPES.items():
        value = options.get(option)
        if value is not None and not isinstance(value, required_type):
            raise RegistrationError(
                f"{option} of {name} must be {_TYPE_NAMES[required_type]}, not {type(value).__name__}."
            )
        if isinstance(value, str) and not is_unicode(value):
            raise RegistrationError(f"{option} of {name} contains a lone surrogate, which is not valid Unicode.")
    meta = options.get("meta")
    if meta is not None:
        if not isinstance(meta, dict):
            raise RegistrationError(f"meta of {name} must be a dict, not {type(meta).__name__}.")
        check_json(meta, f"meta of {name}")
    _check_icons(name, options.get("icons", ()))
    timeout = options.get("timeout")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise RegistrationError(f"timeout of {name} must be a number of seconds above 0, or None.")
    if "max_timeout" in options:
        _check_max_timeout(name, options)


def time_limit_of(options: FeatureOptions) -> TimeLimit | None:
    """Return the time limit of a feature's calls."""
    longest = options.get("max_timeout")
    if "timeout" not in options:
        return DEFAULT_TIME_LIMIT if longest is None else DEFAULT_TIME_LIMIT._replace(longest=longest)
    seconds = options["timeout"]
    return None if seconds is None else TimeLimit(seconds, longest=longest)


def _check_max_timeout(name: str, options: Mapping[str, Any]) -> None:
    longest, timeout = options["max_timeout"], options.get("timeout", DEFAULT_TIME_LIMIT.seconds)
    if isinstance(longest, bool) or not isinstance(longest, int | float) or not 0 < longest < math.inf:
        raise RegistrationError(f"max_timeout of {name} must be a number of seconds above 0; got {longest!r:.60}.")
    if timeout is None or (options.get("task") is not None and "timeout" not in options):
        raise RegistrationError(
            f"max_timeout of {name} has no effect without timeout=, the seconds before an extension."
        )
    if longest < timeout:
        raise RegistrationError(f"max_timeout of {name} must be at least its timeout of {timeout:g} seconds.")


def _check_icons(name: str, icons: Any) -> None:
    if not isinstance(icons, list | tuple) or not all(map(_is_icon, icons)):
        raise RegistrationError(f'icons of {name} must be a list of Icon objects, or of dicts with a string as "src".')
    if icons:
        check_json(icon_list(icons), f"icons of {name}")


def _is_icon(icon: Any) -> bool:
    wire = icon.wire if isinstance(icon, Icon) else icon
    return isinstance(wire, Mapping) and isinstance(wire.get("src"), str)


def tags_of(name: str, options: FeatureOptions) -> frozenset[str]:
    """Return the tags of a feature; raise RegistrationError if they are not strings."""
    tags = options.get("tags") or ()
    if isinstance(tags, str) or not isinstance(tags, list | tuple | set | frozenset):
        raise RegistrationError(f'tags of {name} must be a set of strings, such as {{"admin"}}; got {tags!r:.60}.')
    if not all(isinstance(tag, str) and tag for tag in tags):
        raise RegistrationError(f"tags of {name} must be strings that are not empty.")
    return frozenset(tags)


def version_of(name: str, options: FeatureOptions) -> str | None:
    """Return the version of a feature; raise RegistrationError if it is not a text or a number."""
    version = options.get("version")
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, str | int | float):
        raise RegistrationError(f"version of {name} must be a string such as '2.1', not {type(version).__name__}.")
    text = str(version)
    if not text or "@" in text or not text.isprintable():
        raise RegistrationError(f"version of {name} must have printable characters other than '@'; got {text!r:.60}.")
    return text


def shown_errors_of(name: str, options: FeatureOptions) -> tuple[type[BaseException], ...] | None:
    """Return the types of exceptions whose text clients get. None means those of the server.

    Raises:
        RegistrationError: The option contains something that is not a type of exceptions.
    """
    show_errors = options.get("show_errors")
    if show_errors is None:
        return None
    try:
        return shown_types(show_errors, f"show_errors of {name}")
    except ValueError as error:
        raise RegistrationError(str(error)) from None
