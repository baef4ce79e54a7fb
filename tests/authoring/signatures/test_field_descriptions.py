"""Descriptions of fields, from annotations and from docstrings of classes."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, Required

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.authoring.tool_calls import schema_of, tool_of

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


class Model(BaseModel):
    """A model.

    Attributes:
        first: The first.
        second: Not this one.
        third: Nor this one.
    """

    first: int
    second: Annotated[int, "The second."]
    third: int = Field(description="The third.", alias="number3")


@dataclass
class Record:
    """Args:
    first: The first.
    """

    first: int
    model: Annotated[Model, "A model in it."]
    items: list[Model] = field(default_factory=list)


class Members(TypedDict, total=False):
    """Members."""

    first: Required[Annotated[int, "The first."]]
    second: NotRequired[Annotated[int, "The second."]]


PROPERTIES = {
    "first": {"type": "integer", "description": "The first."},
    "second": {"type": "integer", "description": "The second."},
    "number3": {"type": "integer", "description": "The third."},
}
DESCRIPTION = "A model.\n\nAttributes:\n    second: Not this one.\n    third: Nor this one."


def output_of(function: Any) -> dict[str, Any]:
    schema: dict[str, Any] = tool_of(function).describe()["outputSchema"]
    return schema


def test_a_text_in_an_annotation_describes_a_parameter() -> None:
    def function(
        a: Annotated[int, "An integer."],
        b: Annotated[int, "Not this.", Field(description="From the field.")],
        c: Annotated[int | None, Field(ge=1), "May be left out."] = None,
    ) -> None:
        """Do it.

        Args:
            a: Not this.
        """

    assert schema_of(function)["properties"] == {
        "a": {"type": "integer", "description": "An integer."},
        "b": {"type": "integer", "description": "From the field."},
        "c": {"type": "integer", "description": "May be left out.", "minimum": 1},
    }


class Injected:
    """A mark of another library."""

    description = "Injected"


def test_only_texts_and_fields_describe_a_parameter() -> None:
    def tool(cls: Annotated[str, Injected], mark: Annotated[str, Injected(), Field(description="A name.")]) -> str:
        return cls + mark

    properties = schema_of(tool)["properties"]
    assert properties == {"cls": {"type": "string"}, "mark": {"type": "string", "description": "A name."}}


def test_fields_of_a_model_are_described_where_it_is_an_argument_and_where_it_is_returned() -> None:
    def function(model: Model) -> Model:
        return model

    argument = schema_of(function)["properties"]["model"]
    assert (argument["description"], argument["properties"]) == (DESCRIPTION, PROPERTIES)
    output = output_of(function)
    assert (output["description"], output["properties"]) == (DESCRIPTION, PROPERTIES)


def test_fields_of_a_dataclass_and_the_models_in_it_are_described() -> None:
    def function() -> Record:
        raise NotImplementedError

    output = output_of(function)
    assert output["properties"]["first"] == PROPERTIES["first"]
    assert output["properties"]["model"]["description"] == "A model in it."
    assert output["properties"]["model"]["properties"] == PROPERTIES
    assert output["properties"]["items"]["items"]["properties"] == PROPERTIES


def test_fields_of_a_typed_dict_are_described() -> None:
    def function() -> Members:
        return {"first": 1}

    output = output_of(function)
    assert output["properties"] == {"first": PROPERTIES["first"], "second": PROPERTIES["second"]}
    assert output["description"] == "Members."


def test_a_class_whose_annotations_can_not_be_resolved_is_described_by_its_docstring() -> None:
    def local() -> Any:
        Hidden = collections.Counter  # noqa: N806 - a type

        class Local(BaseModel):
            """Local.

            Attributes:
                first: The first.
            """

            first: int
            hidden: Hidden[str] = Hidden()  # type: ignore[valid-type]

        return Local

    def function() -> Any:
        raise NotImplementedError

    function.__annotations__["return"] = local()
    output = output_of(function)
    assert output["properties"]["first"] == PROPERTIES["first"]
    assert output["description"] == "Local."
