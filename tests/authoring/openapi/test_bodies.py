"""Bodies of requests in each media type."""

from __future__ import annotations

import re
from typing import Any

import pytest

from funcmcp import RegistrationError, ToolError
from funcmcp._authoring.openapi.bodies import FILE, body_of, file_of
from funcmcp._authoring.openapi.operations import OperationPlan, Target, operations, plan_of

FORM = "application/x-www-form-urlencoded"


def plan(content: dict[str, Any], *, required: bool = True, **components: Any) -> OperationPlan:
    operation = {"requestBody": {"required": required, "content": content}}
    document = {"openapi": "3.1.0", "paths": {"/x": {"post": operation}}, "components": components}
    (listed,) = operations(document)
    return plan_of(listed, document)


def sent(made: OperationPlan, arguments: dict[str, Any]) -> tuple[str, bytes | None]:
    target: Target = made.target(arguments)
    return target.headers.get("content-type", ""), target.body


def test_json_comes_before_other_media_types() -> None:
    content: dict[str, Any] = {"text/xml": {}, FORM: {}, "application/merge-patch+json": {"schema": {"type": "object"}}}
    assert sent(plan(content), {"body": {"a": 1}}) == ("application/merge-patch+json", b'{"a":1}')


def test_the_members_of_a_form_are_arguments() -> None:
    properties = {
        "name": {"type": "string"},
        "tags": {"type": "array"},
        "meta": {"type": "object"},
        "id": {"readOnly": True},
    }
    made = plan({FORM: {"schema": {"type": "object", "properties": properties, "required": ["name"]}}})
    assert list(made.input_schema["properties"]) == ["name", "tags", "meta"]
    assert made.input_schema["required"] == ["name"]
    arguments = {"name": "a&b", "tags": [1, "c"], "meta": {"d": 1}}
    assert sent(made, arguments) == (FORM, b"name=a%26b&tags=1&tags=c&meta=%7B%22d%22%3A1%7D")


def test_a_form_has_the_styles_of_its_encoding() -> None:
    properties = {"a": {"type": "object"}, "b": {"type": "array"}, "c": {"type": "object"}}
    encoding = {
        "a": {"style": "deepObject", "explode": True},
        "b": {"explode": False},
        "c": {"contentType": "application/json"},
    }
    made = plan({FORM: {"schema": {"type": "object", "properties": properties}, "encoding": encoding}})
    body = b"a%5Bx%5D%5By%5D=1&b=1,2&c=%7B%22z%22%3A2%7D"
    assert sent(made, {"a": {"x": {"y": 1}}, "b": [1, 2], "c": {"z": 2}}) == (FORM, body)


def test_the_members_of_a_form_may_be_in_several_parts_of_its_schema() -> None:
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    made = plan(
        {FORM: {"schema": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"b": {}}}]}}},
        schemas={"Base": base},
    )
    assert list(made.input_schema["properties"]) == ["a", "b"]
    assert sent(made, {"a": "1", "b": 2})[1] == b"a=1&b=2"


def test_a_form_without_listed_members_is_one_argument() -> None:
    made = plan({FORM: {"schema": {"type": "object", "additionalProperties": {"type": "string"}}}}, required=False)
    assert list(made.input_schema["properties"]) == ["body"]
    assert sent(made, {"body": {"a": "1", "b": None, "c": {"d": 1}}}) == (FORM, b"a=1&c=%7B%22d%22%3A1%7D")
    assert sent(made, {}) == ("", None)


def test_a_form_with_files_has_parts() -> None:
    properties = {
        "file": {"type": "string", "format": "binary", "description": "A picture."},
        "more": {"type": "array", "items": {"contentMediaType": "image/png"}},
        'na"me': {"type": "string"},
        "meta": {"type": "object"},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "none": {},
    }
    made = plan({"multipart/form-data": {"schema": {"type": "object", "properties": properties}}})
    assert made.input_schema["properties"]["file"] == {"type": "string", "description": f"A picture. {FILE}"}
    arguments = {
        "file": 'data:image/png;name=a"b.png;base64,/wA=',
        "more": ["x"],
        "na_me": "y\r\n--",
        "meta": {"a": 1},
        "sizes": [1, 2],
        "none": None,
    }
    content_type, body = sent(made, arguments)
    boundary = content_type.removeprefix("multipart/form-data; boundary=").encode()
    assert re.fullmatch(rb"[0-9a-f]{32}", boundary)
    parts = (body or b"").split(b"--" + boundary)
    start = b'\r\nContent-Disposition: form-data; name="'
    assert parts == [
        b"",
        start + b'file"; filename="a%22b.png"\r\nContent-Type: image/png\r\n\r\n\xff\x00\r\n',
        start + b'more"; filename="more"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nx\r\n',
        start + b'na%22me"\r\n\r\ny\r\n--\r\n',
        start + b'meta"\r\nContent-Type: application/json\r\n\r\n{"a":1}\r\n',
        start + b'sizes"\r\n\r\n1\r\n',
        start + b'sizes"\r\n\r\n2\r\n',
        b"--\r\n",
    ]


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", "application/soap+xml; charset=utf-8"])
def test_a_text_is_one_argument(media_type: str) -> None:
    made = plan({media_type: {"schema": {"type": "object", "properties": {"a": {}}}}})
    assert made.input_schema["properties"]["body"]["type"] == "string"
    assert sent(made, {"body": "<a>ü</a>"}) == (media_type, "<a>ü</a>".encode())


@pytest.mark.parametrize(
    ("media_type", "content_type"),
    [("application/octet-stream", "application/octet-stream"), ("image/png", "image/png"), ("*/*", "image/gif")],
)
def test_bytes_are_a_data_url(media_type: str, content_type: str) -> None:
    made = plan({media_type: {"schema": {"type": "string", "format": "binary"}}})
    assert made.input_schema["properties"]["body"] == {"type": "string", "description": FILE}
    assert sent(made, {"body": "data:image/gif;base64,/wA="}) == (content_type, b"\xff\x00")


def test_any_media_type_is_json_for_an_object() -> None:
    assert sent(plan({"*/*": {"schema": {"type": "object"}}}), {"body": {"a": 1}}) == ("application/json", b'{"a":1}')


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("a text", ("", "text/plain; charset=utf-8", b"a text")),
        ("data:,a%20b", ("", "text/plain", b"a b")),
        ("data:text/csv;name=%C3%BC.csv,a", ("ü.csv", "text/csv", b"a")),
        ("data:image/png;base64,/wA=", ("", "image/png", b"\xff\x00")),
    ],
)
def test_a_file_is_a_text_or_a_data_url(text: str, file: tuple[str, str, bytes]) -> None:
    assert file_of("a", text) == file


@pytest.mark.parametrize("text", ["data:", "data:image/png\r\nX: 1,a", "data:a/b;base64,%", "data:nothing;base64,YQ=="])
def test_a_data_url_that_is_malformed_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=r"^a: "):
        file_of("a", text)


def test_no_body_has_no_plan() -> None:
    assert body_of({}, None) is None
    assert body_of({}, {"content": {}}) is None
    with pytest.raises(RegistrationError, match="media type"):
        body_of({}, {"content": {"a/b\n": {}}})
