"""The official SDK's policies for the state of questions and for variables of URIs, and its checks of paths."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.uri_template import Screening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set
    from typing import Self

    from funcmcp._protocol.uri_template import Values

MIN_KEY_BYTES = 32
"""Bytes that a key has at least."""

_DRIVE = re.compile(r"[A-Za-z]:")


@public("funcmcp.compat")
class RequestStateSecurity:
    """The SDK's option ``request_state_security``. It is checked, and then ignored: funcmcp seals with its own keys.

    Args:
        keys: Secrets of at least 32 bytes. The first one seals.
        codec: An object that seals, in place of keys.
        ttl: Seconds for which a sealed state is accepted.
        bind_principal: Returns the caller that a state belongs to.
        audience: The service that a state belongs to.

    Raises:
        TypeError: A key is neither bytes nor a string.
        ValueError: Both or none of *keys* and *codec* are present, *ttl* is not positive and finite, or a key is too
            short or repeated.
    """

    def __init__(
        self,
        *,
        keys: Sequence[bytes | bytearray | str] | None = None,
        codec: Any = None,
        ttl: float = 600.0,
        bind_principal: Callable[[Any], str | None] | None = None,
        audience: str | None = None,
    ) -> None:
        if (keys is None) == (codec is None):
            raise ValueError("RequestStateSecurity takes exactly one of keys= or codec=")
        if not (math.isfinite(ttl) and ttl > 0):
            raise ValueError(f"request-state ttl must be a positive finite number, got {ttl!r}")
        if keys is not None:
            _check_keys(keys)
        self.codec: Any = codec
        self.ttl: float = ttl
        self.bind_principal = bind_principal
        self.audience: str | None = audience

    @classmethod
    def ephemeral(cls, *, ttl: float = 600.0, audience: str | None = None) -> Self:
        """Return a policy with a random key."""
        return cls(keys=[os.urandom(MIN_KEY_BYTES)], ttl=ttl, audience=audience)


def _check_keys(keys: Sequence[bytes | bytearray | str]) -> None:
    """Raise TypeError or ValueError for keys that the official SDK rejects."""
    secrets: list[bytes] = []
    for index, key in enumerate(keys):
        if not isinstance(key, bytes | bytearray | str):
            raise TypeError(
                f"request-state keys must be bytes, bytearray, or str; keys[{index}] is {type(key).__name__}"
            )
        secret = key.encode() if isinstance(key, str) else bytes(key)
        if len(secret) < MIN_KEY_BYTES:
            raise ValueError(
                f"request-state keys must be at least {MIN_KEY_BYTES} bytes of secret randomness; keys[{index}] is "
                f"{len(secret)} bytes."
            )
        if secret in secrets:
            raise ValueError(f"keys[{index}] duplicates an earlier ring key")
        secrets.append(secret)
    if not secrets:
        raise ValueError("RequestStateSecurity requires at least one key")


@public("funcmcp.compat")
@dataclass(frozen=True)
class ResourceSecurity:
    """The policy for variables of URIs in FastMCP and the official SDK.

    ``FastMCP(resource_security=...)`` and ``@mcp.resource(..., security=...)`` apply it to the reads of clients. The
    default has the checks of funcmcp, too, which are stricter; None is no policy.

    Attributes:
        reject_path_traversal: Reject values that have ``..`` as a part of a path.
        reject_absolute_paths: Reject values that are absolute paths.
        reject_null_bytes: Reject values with NUL.
        exempt_params: Variables that are not checked.
    """

    reject_path_traversal: bool = True
    reject_absolute_paths: bool = True
    reject_null_bytes: bool = True
    exempt_params: Set[str] = field(default_factory=frozenset)

    def validate(self, params: Mapping[str, object]) -> str | None:
        """Return the name of the first variable whose value is rejected; None if there is none."""
        exempt = {name.replace("-", "_") for name in self.exempt_params} | self.exempt_params
        for name, value in params.items():
            values = value if isinstance(value, list | tuple) else [value]
            if name not in exempt and any(isinstance(item, str) and self._is_rejected(item) for item in values):
                return name
        return None

    def _is_rejected(self, value: str) -> bool:
        if self.reject_null_bytes and "\0" in value:
            return True
        if self.reject_path_traversal and contains_path_traversal(value):
            return True
        return self.reject_absolute_paths and is_absolute_path(value)


class InheritedSecurity:
    """The policy of a template that has that of its server."""

    def __repr__(self) -> str:
        return "INHERIT_SECURITY"


INHERIT_SECURITY = InheritedSecurity()
"""The policy of a template that has that of its server."""

DEFAULT_RESOURCE_SECURITY = ResourceSecurity()
"""The policy of a server by default."""


def screening_of(policy: ResourceSecurity | InheritedSecurity | None, default: ResourceSecurity | None) -> Screening:
    """Return which values a template rejects.

    Args:
        policy: The policy of the template.
        default: That of its server.
    """
    is_inherited = isinstance(policy, InheritedSecurity)
    chosen = default if isinstance(policy, InheritedSecurity) else policy
    if chosen is None:
        return Screening(is_strict=False, is_hidden=True, is_inherited=is_inherited)
    is_default = is_inherited and chosen == DEFAULT_RESOURCE_SECURITY
    return Screening(is_strict=is_default, rules=(_rule(chosen),), is_hidden=True, is_inherited=is_inherited)


def with_screening_of(screening: Screening, default: ResourceSecurity | None) -> Screening:
    """Return which values a template of a mounted server rejects in a server with a default policy."""
    if not screening.is_inherited or default is None:
        return screening
    added = screening_of(INHERIT_SECURITY, default)
    return replace(
        screening,
        is_strict=screening.is_strict or added.is_strict,
        rules=(*screening.rules, *added.rules),
        is_hidden=True,
    )


def _rule(policy: ResourceSecurity) -> Callable[[Values], bool]:
    def rejects(values: Values) -> bool:
        # Parts of a path reach the function as one text, which FastMCP checks.
        texts = {name: value if isinstance(value, str) else "/".join(value) for name, value in values.items()}
        return policy.validate(values) is not None or policy.validate(texts) is not None

    return rejects


class PathEscapeError(ValueError):
    """A path leads out of the folder that it must stay in."""


def contains_path_traversal(value: str) -> bool:
    """Return whether a relative path leads out of the folder that it begins in."""
    depth = 0
    for part in value.replace("\\", "/").split("/"):
        if part == "..":
            depth -= 1
        elif part not in {"", "."}:
            depth += 1
        if depth < 0:
            return True
    return False


def is_absolute_path(value: str) -> bool:
    """Return whether a path is absolute on any system, or begins with a drive of Windows."""
    return value.startswith(("/", "\\")) or _DRIVE.match(value) is not None


def safe_join(base: str | Path, *parts: str) -> Path:
    """Return a path below a folder, with its symbolic links resolved.

    Args:
        base: The folder.
        parts: The parts of the path below it.

    Raises:
        PathEscapeError: A part is absolute or has NUL, or the path is not below the folder.
    """
    folder = Path(base).resolve()
    for part in parts:
        if "\0" in part:
            raise PathEscapeError(f"The part {part!r} of a path below {folder} contains NUL.")
        if is_absolute_path(part):
            raise PathEscapeError(f"The part {part!r} of a path below {folder} is absolute. Pass a relative one.")
    path = folder.joinpath(*parts).resolve()
    if not path.is_relative_to(folder):
        raise PathEscapeError(f"The path {path} is not below {folder}.")
    return path


@public("funcmcp.compat.mcp")
class ResourceSecurityError(ValueError):
    """A variable of a URI has a value that the policy rejects.

    Args:
        template: The URI template.
        param: The variable.
    """

    def __init__(self, template: str, param: str) -> None:
        super().__init__(f"Parameter {param!r} of template {template!r} failed security validation")
        self.template: str = template
        self.param: str = param
