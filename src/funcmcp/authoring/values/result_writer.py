"""Conversion of returned values of a type to JSON that fits the type's JSON schema.

How it works: a value is first validated strictly, so that an object of the annotated type passes without a copy. If
this fails, the value's JSON is validated instead: a dict is accepted for a model, and a list for a set. The valid value
is then serialized. pydantic is loaded when the first value is written or the first schema is created.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import encode, is_of_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import SchemaValidator

    from funcmcp.authoring.values.union_limits import BoundedValidator

_MAX_PATH_LENGTH = 200


class ResultWriter:
    """Writes values of one type.

    Args:
        annotation: The type.
        name: The feature's name, for errors.
    """

    def __init__(self, annotation: Any, name: str) -> None:
        self._annotation = annotation
        self._name = name
        self._built: tuple[SchemaValidator | BoundedValidator, Callable[[Any], bytes]] | None = None

    def core(self) -> dict[str, Any]:
        """Return pydantic's core schema of the type. Raise RegistrationError if JSON can't carry the type."""
        from funcmcp.authoring.values.pydantic_result_schemas import result_schema  # noqa: PLC0415 - loads pydantic

        return result_schema(self._annotation, f"What {self._name} returns")

    def write(self, value: Any) -> bytes:
        """Return a value as JSON. Raise ValueError if it is not of the type, or if JSON can't carry it."""
        validator, write = self._built or self.prepare()
        try:
            valid = validator.validate_python(value, strict=True)
        except ValueError:
            valid = self._from_json(validator, value)
        try:
            return write(valid)
        except ValueError as error:
            if is_of_surrogates(error):
                return write(self._from_json(validator, value))
            raise unwritable(value, self._name, error) from None

    def prepare(self) -> tuple[SchemaValidator | BoundedValidator, Callable[[Any], bytes]]:
        """Build the validator and the serializer. Raise RegistrationError if JSON can't carry the type."""
        from funcmcp.authoring.values.pydantic_schemas import is_finite, is_validated, serializer, validator  # noqa: PLC0415 - loads pydantic

        core = self.core()
        writer = serializer(core)
        to_json = functools.partial(writer.to_json, by_alias=True)
        if not is_validated(core):
            # An attribute that is not of its type, after an assignment without validation, is an error. By default
            # the serializer only warns, and the filters of warnings belong to the author and to all threads.
            to_json = functools.partial(to_json, warnings="error")

        def write_checked(value: Any) -> bytes:
            text = to_json(value)
            # The serializer writes null for NaN, so the value is written again by the codec, which rejects NaN.
            return encode(writer.to_python(value, mode="json", by_alias=True)) if b"null" in text else text

        write = to_json if is_finite(core) else write_checked
        self._built = validator(core), write
        return self._built

    def _from_json(self, validator: SchemaValidator | BoundedValidator, value: Any) -> Any:
        """Return an object of the type for a value with the same JSON, such as a dict for a model."""
        try:
            text = encode(value, binary="base64")
        except ValueError as error:
            raise unwritable(value, self._name, error) from None
        try:
            return validator.validate_json(text, strict=True)
        except ValueError as error:
            raise ValueError(f"{self._name} returned what its annotation does not allow: {error}") from None


def unwritable(value: Any, name: str, error: ValueError) -> ValueError:
    """Return the error for a value that JSON can't carry, with the feature's name and the path in the value.

    Args:
        value: The returned value.
        name: The feature's name.
        error: The encoder's error, which is returned if no wrong value is found.
    """
    path, reason = _path_to_unwritable(value, "")
    if reason is None:
        return error
    place = f"the value at {path.removeprefix('.')}" if path else "a value"
    return ValueError(f"{name} returned {place} that can't be written as JSON: {reason}")


def _path_to_unwritable(value: Any, path: str) -> tuple[str, str | None]:
    """Return the path of the innermost value that JSON can't carry, and the encoder's reason."""
    while len(path) < _MAX_PATH_LENGTH:
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
    """Return a value without a declared type as dicts, lists and scalars. Raise ValueError if JSON can't carry it."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - loaded with the codec

    return to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="constants")
