"""Forms of the official SDK: a pydantic model whose schema is sent as pydantic writes it, with titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from funcmcp._authoring.calling.questions import Elicit
from funcmcp._compat.elicitation import question_of
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema


class _FormSchema(GenerateJsonSchema):
    """Creates schemas without null, which forms do not have: a field with a default may be left out."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Return the schema of the other type."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema without a default of None."""
        written = super().default_schema(schema)
        if written.get("default") is None:
            written.pop("default", None)
        return written


class SDKForm(Elicit[Any]):
    """A form for the user.

    Args:
        message: The reason for the question, which the user reads.
        model: The form: a pydantic model, or what `question_of` takes.

    Raises:
        TypeError: A form can't show one of the fields.
    """

    def __init__(self, message: str, model: Any) -> None:
        try:
            super().__init__(message, question_of(model))
        except RegistrationError as error:
            raise TypeError(str(error)) from error
        if isinstance(model, type) and issubclass(model, BaseModel):
            written = model.model_json_schema(schema_generator=_FormSchema)
            if "$defs" not in written:  # a field of a form can't refer to another schema
                self._schema = written
