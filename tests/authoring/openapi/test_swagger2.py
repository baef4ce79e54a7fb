"""Operations of Swagger 2.0."""

from __future__ import annotations

from typing import Any

from funcmcp._authoring.openapi.operations import OperationPlan, operations, plan_of
from funcmcp._authoring.openapi.swagger2 import security_schemes_of_2_0


def plan(operation: dict[str, Any], **members: Any) -> OperationPlan:
    document = {"swagger": "2.0", "paths": {"/x/{id}": {"post": operation}}, **members}
    (listed,) = operations(document)
    return plan_of(listed, document)


def test_parameters_are_arguments_in_the_format_of_their_collection() -> None:
    array: dict[str, Any] = {"in": "query", "type": "array", "items": {"type": "string"}}
    parameters = [
        {"name": "id", "in": "path", "required": True, "type": "integer", "maximum": 9},
        *({**array, "name": name, "collectionFormat": name} for name in ("csv", "ssv", "tsv", "pipes", "multi")),
        {"name": "X-Tags", "in": "header", "type": "array", "items": {}, "collectionFormat": "pipes"},
        {"$ref": "#/parameters/Page"},
    ]
    made = plan({"parameters": parameters}, parameters={"Page": {"name": "page", "in": "query", "type": "integer"}})
    assert made.input_schema["properties"]["id"] == {"type": "integer", "maximum": 9}
    assert made.input_schema["properties"]["page"] == {"type": "integer"}
    lists = {name: ["a", "b"] for name in ("csv", "ssv", "tsv", "pipes", "multi", "X-Tags")}
    target = made.target({"id": 1, "page": 2, **lists})
    assert target.path == "/x/1"
    assert target.query == "csv=a,b&ssv=a%20b&tsv=a%09b&pipes=a%7Cb&multi=a&multi=b&page=2"
    assert target.headers == {"x-tags": "a,b"}


def test_a_body_has_the_media_type_that_the_document_consumes() -> None:
    order = {"type": "object", "properties": {"a": {"type": "string", "x-nullable": True}}}
    body = {"name": "order", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Order"}}
    made = plan({"parameters": [body]}, definitions={"Order": order}, consumes=["application/vnd.a+json"])
    assert made.input_schema["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    target = made.target({"id": "1", "a": None})
    assert (target.headers, target.body) == ({"content-type": "application/vnd.a+json"}, b'{"a":null}')


def test_fields_are_a_form() -> None:
    fields = [
        {"name": "a", "in": "formData", "type": "string", "required": True, "description": "An a."},
        {"name": "b", "in": "formData", "type": "array", "items": {"type": "integer"}, "collectionFormat": "pipes"},
    ]
    made = plan({"parameters": fields})
    assert made.input_schema["properties"]["a"] == {"type": "string", "description": "An a."}
    assert made.input_schema["required"] == ["id", "a"]
    assert made.target({"id": "1", "a": "x", "b": [1, 2]}).body == b"a=x&b=1%7C2"


def test_files_are_parts() -> None:
    fields = [{"name": "f", "in": "formData", "type": "file"}]
    target = plan({"parameters": fields}).target({"id": "1", "f": "text"})
    assert target.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="f"; filename="f"' in (target.body or b"")


def test_a_response_is_described_by_its_schema() -> None:
    responses = {"200": {"description": "", "schema": {"$ref": "#/definitions/Order"}}, "404": {"description": ""}}
    made = plan({"responses": responses}, definitions={"Order": {"type": "object", "properties": {"a": {}}}})
    assert made.output_schema == {"type": "object", "properties": {"a": {}}}


def test_basic_authentication_has_another_name() -> None:
    schemes = {"a": {"type": "basic"}, "b": {"type": "apiKey", "in": "query", "name": "key"}}
    assert security_schemes_of_2_0({"securityDefinitions": schemes}) == {
        "a": {"type": "http", "scheme": "basic"},
        "b": schemes["b"],
    }
    assert security_schemes_of_2_0({}) == {}
