"""From values of a type to JSON, as the type's JSON schema says: what tools and resources return.

pydantic is loaded when something is written or described for the first time.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import SchemaValidator

    from funcmcp.authoring.values.union_limits import BoundedValidator

_LONGEST_PATH = 200


class ResultWriter:
    """Writes values of one type.

    Args:
        annotation: the type.
        name: whose values they are, such as a tool's name.
    """

    def __init__(self, annotation: Any, name: str) -> None:
        self._annotation = annotation
        self._name = name
        self._built: tuple[SchemaValidator | BoundedValidator, Callable[[Any], bytes]] | None = None

    def core(self) -> dict[str, Any]:
        """Return pydantic's core schema of what is written; raise RegistrationError if the type is nothing in JSON."""
        from funcmcp.authoring.values.pydantic_result_schemas import for_results  # noqa: PLC0415 - pydantic
        from funcmcp.authoring.values.pydantic_schemas import core_schema_of  # noqa: PLC0415 - pydantic

        return for_results(core_schema_of(self._annotation, f"What {self._name} returns"))

    def write(self, value: Any) -> bytes:
        """Return a value as JSON; raise ValueError if it is not of the type or JSON can't say it."""
        own, write = self._built or self.prepare()
        try:
            valid = own.validate_python(value, strict=True)
        except ValueError:
            valid = self._as_json(own, value)
        try:
            return write(valid)
        except UserWarning as warning:
            raise ValueError(f"{self._name} returned what its annotation does not allow: {warning}") from None
        except ValueError as error:
            raise unwritable(value, self._name, error) from None

    def prepare(self) -> tuple[SchemaValidator | BoundedValidator, Callable[[Any], bytes]]:
        """Build what checks and what writes values; raise RegistrationError if the type is nothing in JSON."""
        from funcmcp.authoring.values.pydantic_schemas import is_finite, serializer, validator  # noqa: PLC0415 - pydantic

        core = self.core()
        # A field that is not of its type, as an unchecked assignment leaves it, is a warning of the serializer. It has
        # to be an error. Asking the serializer itself for that costs more than all of its work.
        warnings.filterwarnings("error", "Pydantic serializer warnings", UserWarning, re.escape(__name__))
        writer = serializer(core)

        to_json = functools.partial(writer.to_json, by_alias=True)

        def write_checked(value: Any) -> bytes:
            text = to_json(value)
            # Where NaN can be, the serializer's own JSON has null for it.
            return encode(writer.to_python(value, mode="json", by_alias=True)) if b"null" in text else text

        write = to_json if is_finite(core) else write_checked
        self._built = validator(core), write
        return self._built

    def _as_json(self, own: SchemaValidator | BoundedValidator, value: Any) -> Any:
        """Read a value that is not of the type, but whose JSON may be: a dict for a model, a list for a set."""
        try:
            text = encode(jsonable(value))
        except ValueError as error:
            raise unwritable(value, self._name, error) from None
        try:
            return own.validate_json(text, strict=True)
        except ValueError as error:
            raise ValueError(f"{self._name} returned what its annotation does not allow: {error}") from None


def unwritable(value: Any, name: str, error: ValueError) -> ValueError:
    """Return the error for a value that JSON can't say: it names the feature and the path of the value.

    Args:
        value: What the function returned.
        name: The feature's name.
        error: What the encoder says; it is returned where the whole value can be written alone.
    """
    path, reason = _path_to_unwritable(value, "")
    if reason is None:
        return error
    where = f"the value at {path.removeprefix('.')}" if path else "a value"
    return ValueError(f"{name} returned {where} that can't be written as JSON: {reason}")


def _path_to_unwritable(value: Any, path: str) -> tuple[str, str | None]:
    """Return the path of the innermost value that JSON can't say, and the reason."""
    while len(path) < _LONGEST_PATH:
        for step, member in _members_of(value):
            if _reason_against(member) is not None:
                path, value = path + step, member
                break
        else:
            break
    return path, _reason_against(value)


def _reason_against(value: Any) -> str | None:
    try:
        encode(jsonable(value))
    except (ValueError, TypeError, RecursionError) as error:
        return str(error).partition("\n")[0]
    return None


def _members_of(value: Any) -> list[tuple[str, Any]]:
    """Return the members of a value with their steps in a path, such as ``.name`` and ``[0]``."""
    if isinstance(value, Mapping):
        return [(f".{name}", member) for name, member in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", member) for index, member in enumerate(value)]
    kind = type(value)
    names: Any = getattr(kind, "__pydantic_fields__", getattr(kind, "__dataclass_fields__", ()))
    return [(f".{name}", getattr(value, name, None)) for name in names]


def jsonable(value: Any) -> Any:
    """Return what a value that no type describes is in JSON; raise ValueError if it is nothing."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - loaded with the codec

    return to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="constants")
