"""Conversion of returned values of a type to JSON that fits the type's JSON schema.

How it works: a value is serialized, not validated, because an object of the annotated type is valid already. What was
serialized is checked against the JSON schema of the type. A value of another shape, such as a dict for a model or a
list for a set, is read once, and the object is serialized. An object of another class is read only if it has the same
fields, so that nothing in it is lost, and no default is invented.

pydantic's serializer writes a value of another shape as it is, and only warns. A warning that is an error costs more
than the check. Therefore types whose check finds every other shape (`is_exact`) are serialized without warnings. For
types without classes and functions of the author (`is_validated`), pydantic's strict validation is a quicker check.

pydantic and jsonschema-rs are loaded when the first value is written or the first schema is created.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import ValidationError, from_json, to_json

from funcmcp._authoring.results.content import Content, ToolResult, base64
from funcmcp._authoring.results.sdk_results import converted
from funcmcp._authoring.schemas.argument_errors import MAX_LINES, keyword_errors, validation_errors
from funcmcp._authoring.schemas.python_values import (
    by_label,
    fields_of,
    has_labels,
    is_of_library,
    python_value,
    type_name,
    with_python_values,
    without_labels,
)
from funcmcp._authoring.schemas.string_formats import RESULT_FORMATS
from funcmcp._authoring.signatures.annotations import awaited, marks_of, union_members, without_marks
from funcmcp._protocol.codec import encode, has_constants, is_of_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema_rs import Draft202012Validator
    from pydantic_core import SchemaValidator

    from funcmcp._authoring.schemas.pydantic_schemas import Node
    from funcmcp._authoring.schemas.union_limits import BoundedValidator

_MAX_PATH_LENGTH = 200
_LOST_SURROGATE = 3 * "\ufffd".encode()
"""What pydantic's serializer makes of a lone surrogate in the name of a dict's member."""

_TEXTS = frozenset({str, bytes, type(None)})
_NO_CONSTANT = "JSON has no "
"""The beginning of the codec's error for NaN and Infinity."""

_PREFIXES = ("Error serializing to JSON: ", "Error calling function: ", "PydanticSerializationError: ", "ValueError: ")
"""The texts that pydantic writes before that of an exception in a function that it calls."""

_SHAPE_WARNING = "Pydantic serializer warnings"
"""The beginning of pydantic's error for a value of another shape."""


class ResultWriter:
    """Writes values of one type.

    Args:
        annotation: The type.
        name: The feature's name, for errors.

    Attributes:
        may_write_blocks: Whether values may contain content blocks.
    """

    def __init__(self, annotation: Any, name: str) -> None:
        self._annotation = annotation
        self._name = name
        self._write: Callable[[Any], bytes | None] | None = None
        self._serialize: Callable[[Any], Any]
        self._is_exact: bool
        self._is_lazy: bool
        self._converts_first: bool
        self._class_validators: dict[type, SchemaValidator | BoundedValidator] = {}
        self.may_write_blocks = True

    def core(self) -> Node:
        """Return pydantic's core schema of the type. Raise RegistrationError if JSON can't carry the type."""
        return self._core

    @functools.cached_property
    def _core(self) -> Node:
        from funcmcp._authoring.schemas.pydantic_result_schemas import result_schema  # noqa: PLC0415 - loads pydantic

        return result_schema(self._annotation, f"What {self._name} returns")

    @functools.cached_property
    def _validator(self) -> SchemaValidator | BoundedValidator:
        from funcmcp._authoring.schemas.pydantic_result_schemas import readable  # noqa: PLC0415 - loads pydantic
        from funcmcp._authoring.schemas.pydantic_schemas import validator  # noqa: PLC0415 - loads pydantic

        return validator(readable(self._core))

    @functools.cached_property
    def _instance_validator(self) -> SchemaValidator | BoundedValidator:
        """The validator of values that contain instances, each as an object that stands for it."""
        from funcmcp._authoring.schemas.pydantic_result_schemas import (  # noqa: PLC0415 - loads pydantic
            readable,
            reading_instances,
        )
        from funcmcp._authoring.schemas.pydantic_schemas import validator  # noqa: PLC0415 - loads pydantic

        return validator(reading_instances(readable(self._core)))

    @functools.cached_property
    def _classes(self) -> tuple[type, ...]:
        """The models and dataclasses in the type."""
        from funcmcp._authoring.schemas.pydantic_result_schemas import classes_in  # noqa: PLC0415 - loads pydantic

        return classes_in(self._core)

    @functools.cached_property
    def _checker(self) -> Draft202012Validator:
        """The check of JSON values against the type's schema, with formats."""
        from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - loads the library

        from funcmcp._authoring.schemas.json_schema import complete_schema  # noqa: PLC0415 - loads pydantic

        schema = complete_schema(self._core, f"What {self._name} returns", closed=self._is_exact)
        return Draft202012Validator(schema, validate_formats=True, formats=RESULT_FORMATS)

    def write(self, value: Any) -> bytes:
        """Return a value as JSON. Raise ValueError if it is not of the type, or if JSON can't carry it."""
        write = self._write or self.prepare()
        failure: Exception | None = None
        try:
            if self._is_lazy:
                value = list(value)
            if self._converts_first:
                value = with_python_values(value)
            text = write(value)
        except (AttributeError, TypeError, ValueError) as error:
            text, failure = None, error
        return text or self._write_other(value, failure)

    def prepare(self) -> Callable[[Any], bytes | None]:
        """Build the serializer and the check. Raise RegistrationError if JSON can't carry the type.

        Returns:
            A function that writes most values. It returns None for a value whose JSON does not fit the type's schema,
            and for some that do, and raises ValueError for a value that can't be serialized.
        """
        from funcmcp._authoring.schemas.pydantic_result_schemas import (  # noqa: PLC0415 - loads pydantic
            is_ambiguous,
            is_exact,
            is_open,
            is_validated,
        )
        from funcmcp._authoring.schemas.pydantic_schemas import serializer  # noqa: PLC0415 - loads pydantic

        self._is_exact = is_exact(self._core)
        self._is_lazy = self._core["type"] == "generator"
        self._converts_first = is_of_library(without_marks(self._annotation)) or is_ambiguous(self._core)
        warnings: Any = False if self._is_exact else "error"
        self._serialize = functools.partial(
            serializer(self._core).to_python, mode="json", by_alias=True, warnings=warnings, fallback=written_form
        )
        if is_validated(self._core):
            self.may_write_blocks = is_open(self._core)
            self._write = _validating(self._validator, self._text_serializer())
        else:
            self._write = _checking(self._serialize, self._checker)
        return self._write

    def _text_serializer(self) -> Callable[[Any], bytes]:
        """Return the function that writes valid objects as JSON."""
        from funcmcp._authoring.schemas.pydantic_schemas import text_serializer  # noqa: PLC0415 - loads pydantic

        if not self.may_write_blocks:
            return functools.partial(text_serializer(self._core, inf_nan="constants").to_json, by_alias=True)
        to_json = text_serializer(self._core, inf_nan="null").to_json
        return functools.partial(to_json, by_alias=True, warnings=False, fallback=written_form)

    def _write_other(self, value: Any, failure: Exception | None) -> bytes:
        """Write a value of another shape, or with surrogates or parts of other libraries. Raise ValueError for others.

        Args:
            value: The value.
            failure: The error of the first attempt, or None if its JSON did not fit the schema.
        """
        try:
            return self._write_converted(value, failure)
        except ValueError:
            other_form = self._other_form(value)
            if other_form is value:
                raise
            return self.write(other_form)

    def _other_form(self, value: Any) -> Any:
        """Return a value with each Series as the type may want it: by its labels, or without them.

        A value without labels is returned itself.
        """
        if self._core["type"] == "dict" and has_labels(value):
            return by_label(value)
        try:
            return without_labels(value)
        except RecursionError:  # it contains itself
            return value

    def _write_converted(self, value: Any, failure: Exception | None) -> bytes:
        try:
            converted_value = with_python_values(value)
        except ValueError as error:
            raise unwritable(value, self._name, error) from None
        if is_of_library(type(value)):
            return self.write(converted_value)  # as the list or the number that it stands for
        value = converted_value
        has_other_shape = self._is_exact or _SHAPE_WARNING in str(failure)
        if has_other_shape or _has_surrogates(value):
            value = self._read(value)
        try:
            text = encode(self._serialize(value))
        except ValueError as error:
            if _SHAPE_WARNING in str(error):
                raise self._wrong("a serializer returned another type than it declares.") from None
            raise unwritable(value, self._name, error) from None
        for mismatch in self._checker.iter_errors(from_json(text)):
            path, phrase = keyword_errors(mismatch)[0]
            raise self._wrong(f"{path} {phrase}".lstrip())
        return text

    def _read(self, value: Any) -> Any:
        """Return an object of the type for a value with the same JSON, such as a dict for a model."""
        validator = self._validator
        if self._must_be_kept(value):
            validator = self._validator_of(type(value))
        elif self._classes:
            instances: list[Any] = []
            marked = _with_marks(value, self._must_be_marked, instances)
            if instances:
                return self._read_around(marked, instances)
        text = self._encoded(value)
        try:
            read = validator.validate_json(text, strict=True)
            return list(read) if self._is_lazy else read
        except ValueError as error:
            raise self._wrong(error, from_json(text)) from None

    def _read_around(self, marked: Any, instances: list[Any]) -> Any:
        """Read a value that contains instances of classes. Those of the type's classes are valid: no validator runs.

        Args:
            marked: The value, with an object in place of each instance.
            instances: The instances.
        """
        text = self._encoded(marked)
        try:
            read = self._instance_validator.validate_json(text, strict=True, context=instances)
            return list(read) if self._is_lazy else read
        except ValueError as error:
            for instance in instances:
                if not isinstance(instance, self._classes):
                    raise self._wrong(self._expected(type(instance))) from None
            raise self._wrong(error, from_json(text)) from None

    def _must_be_kept(self, value: Any) -> bool:
        """Return whether a value is an object that must not be read as an object of another class."""
        fields = fields_of(type(value))
        if fields is None or not self._classes:
            return False
        if isinstance(value, self._classes):
            return True
        is_root_model = getattr(type(value), "__pydantic_root_model__", False)  # it may be a list or a text in JSON
        return not is_root_model and all(fields.keys() != (fields_of(cls) or {}).keys() for cls in self._classes)

    def _must_be_marked(self, value: Any) -> bool:
        """Return whether a value inside another one must be kept, or is bytes in an encoding of the author's."""
        return self._must_be_kept(value) or (isinstance(value, bytes) and bytes in self._classes)

    def _encoded(self, value: Any) -> bytes:
        """Return a value as JSON without regard to the type. Raise ValueError if JSON can't carry it."""
        try:
            return encode(value, binary="base64", fallback=written_form)
        except ValueError as error:
            raise unwritable(value, self._name, error) from None

    def _validator_of(self, kind: type) -> SchemaValidator | BoundedValidator:
        """Return the validator of the class in the type that objects of a class belong to. Raise if there is none.

        It is the class itself, or else its nearest base.
        """
        cls = next((base for base in kind.__mro__ if base in self._classes), None)
        if cls is None:
            raise self._wrong(self._expected(kind))
        if cls not in self._class_validators:
            from funcmcp._authoring.schemas.pydantic_result_schemas import (  # noqa: PLC0415 - loads pydantic
                part_of_class,
                readable,
            )
            from funcmcp._authoring.schemas.pydantic_schemas import validator  # noqa: PLC0415 - loads pydantic

            self._class_validators[cls] = validator(part_of_class(readable(self._core), cls))
        return self._class_validators[cls]

    def _expected(self, kind: type) -> str:
        expected = " or ".join(sorted(cls.__name__ for cls in self._classes))
        return f"{type_name(kind)}. Return {expected}, or a dict."

    def _wrong(self, reason: object, value: Any = None) -> ValueError:
        """Return the error for a value that the annotation does not allow.

        Args:
            reason: A phrase, or the error of pydantic.
            value: The value that pydantic validated, as JSON.
        """
        if isinstance(reason, ValidationError):
            lines = validation_errors(reason, value)
            reason = "; ".join(f"{path} {phrase}".lstrip() for path, phrase in lines[:MAX_LINES])
        return ValueError(f"{self._name} returned what its annotation does not allow: {reason}")


def _with_marks(value: Any, must_be_kept: Callable[[Any], bool], instances: list[Any]) -> Any:
    """Return a value in which an object with one member stands for each instance that must be kept.

    Args:
        value: The value.
        must_be_kept: Returns whether a value is such an instance.
        instances: Gets the instances.
    """
    from funcmcp._authoring.schemas.pydantic_result_schemas import INSTANCE  # noqa: PLC0415 - loads pydantic

    if must_be_kept(value):
        instances.append(value)
        return {INSTANCE: len(instances) - 1}
    if type(value) is dict:
        return {name: _with_marks(member, must_be_kept, instances) for name, member in value.items()}
    if type(value) in {list, tuple, set, frozenset}:
        return [_with_marks(member, must_be_kept, instances) for member in value]
    return value


def _checking(serialize: Callable[[Any], Any], checker: Draft202012Validator) -> Callable[[Any], bytes | None]:
    """Return a function that serializes a value and checks the JSON value."""
    is_valid = checker.is_valid

    def write(value: Any) -> bytes | None:
        json_value = serialize(value)
        if not is_valid(json_value):
            return None
        text = to_json(json_value, inf_nan_mode="null")
        return None if _has_lost_surrogate(text) else text

    return write


def _validating(
    validator: SchemaValidator | BoundedValidator, serialize: Callable[[Any], bytes]
) -> Callable[[Any], bytes | None]:
    """Return a function that validates a value strictly and serializes it."""
    validate = validator.validate_python

    def write(value: Any) -> bytes | None:
        text = serialize(validate(value, strict=True))
        if has_constants(text) or _has_lost_surrogate(text):
            return None
        return text

    return write


def _has_lost_surrogate(text: bytes) -> bool:
    return not text.isascii() and _LOST_SURROGATE in text


def text_conversion(annotation: Any, name: str) -> Callable[[Any], Any] | None:
    """Return a function that serializes and checks the texts and bytes of a feature.

    The function returns bytes unchanged, unless a serializer of the author makes something else of them. It raises
    ValueError for a value that the annotation does not allow.

    Args:
        annotation: The return annotation.
        name: The feature's name, for errors.

    Returns:
        The function; None if the annotation has no constraints and no serializers, or other types than text and bytes.
    """
    annotation = awaited(annotation)
    if not {without_marks(member) for member in union_members(annotation)} <= _TEXTS:
        return None
    marks = [mark for part in (annotation, *union_members(annotation)) for mark in marks_of(part)]
    if all(isinstance(mark, str) for mark in marks):
        return None
    writer = ResultWriter(annotation, name)

    def converted(value: Any) -> Any:
        written = from_json(writer.write(value))
        if isinstance(value, bytes) and written == base64(value):
            return value
        return written

    return converted


def _has_surrogates(value: Any) -> bool:
    try:
        to_json(value, fallback=written_form)
    except ValueError as error:
        return is_of_surrogates(error)
    return False


def unwritable(value: Any, name: str, error: ValueError) -> ValueError:
    """Return the error for a value that JSON can't carry, with the feature's name and the path in the value.

    NaN and Infinity are the reason only if the encoder says so, because many types allow them.

    Args:
        value: The returned value.
        name: The feature's name.
        error: The encoder's error, which is returned if no wrong value is found.
    """
    if isinstance(value, ToolResult):
        value = {"content": value.content, "structured_content": value.structured_content, "meta": value.meta}
    reject: Callable[[Any], str | None] = _reason_against
    if _NO_CONSTANT in str(error) and _reason_against(value) is None:
        reject = _reason_against_constants
    path, reason = _path_to_unwritable(value, reject)
    if reason is None:
        return error
    place = f"the value at {path.removeprefix('.')}" if path else "a value"
    return ValueError(f"{name} returned {place} that can't be written as JSON: {reason.removesuffix('.')}.")


def _path_to_unwritable(value: Any, reject: Callable[[Any], str | None]) -> tuple[str, str | None]:
    """Return the path of the innermost value that JSON can't carry, and the reason.

    Args:
        value: The value around it.
        reject: Returns the reason against a value, or None.
    """
    path = ""
    while len(path) < _MAX_PATH_LENGTH:
        for step, member in _members_of(value):
            if reject(member) is not None:
                path, value = path + step, member
                break
        else:
            break
    return path, reject(value)


def _reason_against_constants(value: Any) -> str | None:
    reason = _reason_against(value, encode)
    return None if reason is None else f"{reason.removesuffix('.')}. Write None in its place."


def _reason_against(value: Any, write: Callable[[Any], bytes] = to_json) -> str | None:
    """Return why a value can't be written, or None.

    Args:
        value: The value.
        write: Writes the value after its conversion. By default NaN and Infinity are null.
    """
    try:
        write(jsonable(value))
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, ValueError) and is_of_surrogates(error):
            return None
        reason = str(error).partition("\n")[0]
        for prefix in _PREFIXES:
            reason = reason.removeprefix(prefix)
        return reason
    return None


def _members_of(value: Any) -> list[tuple[str, Any]]:
    """Return the members of a value with their steps in a path, such as ``.name`` and ``[0]``."""
    if isinstance(value, Mapping):
        return [(f".{name}", member) for name, member in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", member) for index, member in enumerate(value)]
    return [(f".{name}", getattr(value, name, None)) for name in fields_of(type(value)) or ()]


def jsonable(value: Any) -> Any:
    """Return a value without a declared type as dicts, lists and scalars. Raise ValueError if JSON can't carry it."""
    try:
        return _as_json_types(value)
    except (TypeError, ValueError):
        return _as_json_types(with_python_values(value))


def _as_json_types(value: Any) -> Any:
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - loaded with the codec

    return to_jsonable_python(
        value, by_alias=True, bytes_mode="base64", inf_nan_mode="constants", fallback=written_form
    )


def written_form(value: Any) -> Any:
    """Return what is written for a value that pydantic does not know: a content block, or a Python value.

    Raises:
        PydanticSerializationError: JSON can't carry the value.
    """
    own_value = converted(value)
    return own_value.block if isinstance(own_value, Content) else python_value(own_value)
