"""Operations of OpenAPI documents, 3.0 and 3.1: their schemas, and the requests that arguments make."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import RegistrationError, ToolError
from funcmcp._authoring.openapi.operations import OperationPlan, Target, operations, plan_of
from funcmcp._authoring.schemas.handwritten_schema import check_schema, schema_checker


def plan(operation: dict[str, Any], *, path: str = "/x", version: str = "3.1.0", **components: Any) -> OperationPlan:
    document = {"openapi": version, "paths": {path: {"post": operation}}, "components": components}
    (found,) = operations(document)
    made = plan_of(found, document)
    check_schema(made.input_schema, "input_schema", objects_only=True)
    schema_checker(made.input_schema, "input_schema")
    return made


def parameter(name: str, where: str, schema: Any = True, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "schema": schema, "required": where == "path", **more}


def body(schema: Any, **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}, **more}}


def test_an_operation_without_an_id_is_named_by_its_method_and_path() -> None:
    document = {"openapi": "3.0.3", "paths": {"/a/{b}/c.d": {"get": {}}}}
    assert [operation.name for operation in operations(document)] == ["get_a_b_c_d"]


def test_an_id_that_is_no_name_is_made_one() -> None:
    document = {"openapi": "3.0.3", "paths": {"/": {"get": {"operationId": "Orders: get it!" + "x" * 200}}}}
    (operation,) = operations(document)
    assert operation.name.startswith("Orders_get_it_xxx")
    assert len(operation.name) == 64


def test_methods_that_tell_a_model_nothing_are_no_operations() -> None:
    item: dict[str, Any] = {key: {} for key in ("get", "put", "post", "patch", "delete", "head", "options", "trace")}
    found = operations({"openapi": "3.1.0", "paths": {"/": item}})
    assert [operation.method for operation in found] == ["GET", "PUT", "POST", "PATCH", "DELETE"]


@pytest.mark.parametrize(
    ("schema", "meant"),
    [
        ({"type": "string", "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
        ),
        (
            {"nullable": True, "allOf": [{"$ref": "#/components/schemas/Size"}]},
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        ),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        ({"type": "string", "format": "date", "pattern": "YYYY-MM-DD"}, {"type": "string", "format": "date"}),
        ({"type": "string", "pattern": "^(?!a)"}, {"type": "string"}),
        ({"type": "Text", "minimum": "0", "required": True, "default": {"$ref": "a"}}, {}),
        ({"type": "integer", "xml": {}, "x-mine": 1, "format": "int32"}, {"type": "integer"}),
    ],
)
def test_the_dialect_of_3_0_is_read_as_it_is_meant(schema: dict[str, Any], meant: dict[str, Any]) -> None:
    made = plan(
        {"parameters": [parameter("a", "query", schema)]}, version="3.0.4", schemas={"Size": {"type": "integer"}}
    )
    assert made.input_schema["properties"]["a"] == meant


def test_the_dialect_of_3_1_is_json_schema() -> None:
    schema = {"type": ["integer", "null"], "exclusiveMinimum": 1, "description": "A.", "nullable": True}
    made = plan({"parameters": [parameter("a", "query", schema)]})
    assert made.input_schema["properties"]["a"] == {
        "description": "A.",
        "anyOf": [{"type": "integer", "exclusiveMinimum": 1}, {"type": "null"}],
    }


def test_references_lead_to_parameters_bodies_responses_and_schemas() -> None:
    order = {"type": "object", "properties": {"id": {"$ref": "#/components/schemas/Id"}}, "required": ["id"]}
    operation = {
        "parameters": [{"$ref": "#/components/parameters/Page"}],
        "requestBody": {"$ref": "#/components/requestBodies/Order"},
        "responses": {"200": {"$ref": "#/components/responses/Order"}, "404": {"description": ""}},
    }
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}
    made = plan(
        operation,
        schemas={"Id": {"type": "integer"}, "Order": order},
        parameters={"Page": parameter("page", "query", {"type": "integer"})},
        requestBodies={"Order": {**content, "required": True}},
        responses={"Order": content},
    )
    integer = {"type": "integer"}
    assert made.input_schema["properties"] == {"page": integer, "id": integer}
    assert made.output_schema == {"type": "object", "properties": {"id": integer}, "required": ["id"]}


@pytest.mark.parametrize(
    "reference",
    [
        *("#/components/schemas/Nowhere", "other.json#/Order", "https://example.com/Order", "file:///etc/passwd"),
        *("#/components/schemas/A/properties/b", "", 5, None),
    ],
)
def test_a_reference_to_elsewhere_is_not_followed(reference: Any) -> None:
    made = plan({"parameters": [parameter("a", "query", {"$ref": reference})]}, schemas={"A": {}})
    assert made.input_schema["properties"] == {"a": {}}
    assert "refers to" in made.schemas.problems[0]
    with pytest.raises(RegistrationError, match="refers to"):
        plan({"parameters": [{"$ref": "other.json#/Page"}]})


def test_only_described_members_are_required() -> None:
    parts = [{"properties": {"id": {"readOnly": True}, "a": {"type": "string"}}}, {"required": ["id", "a", "other"]}]
    made = plan(body({"type": "object", "properties": {"x": {"allOf": parts}}}))
    assert made.input_schema["properties"]["x"] == {"properties": {"a": {"type": "string"}}, "required": ["a"]}


def test_a_reference_may_lead_to_any_place_in_the_document() -> None:
    made = plan(
        {"parameters": [parameter("a", "query", {"$ref": "#/components/schemas/A/properties/b~1c%20d"})]},
        schemas={"A": {"properties": {"b/c d": {"type": "integer"}}}},
    )
    assert made.input_schema["properties"] == {"a": {"type": "integer"}}


def test_a_reference_in_a_circle_is_refused() -> None:
    circle = {"$ref": "#/components/parameters/A"}
    with pytest.raises(RegistrationError, match="circle of references"):
        plan({"parameters": [circle]}, parameters={"A": circle})


def test_members_that_only_the_other_side_sets_are_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer", "readOnly": True}, "key": {"type": "string", "writeOnly": True}},
        "required": ["id", "key"],
    }
    responses = {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}}
    made = plan({**body(schema), **responses})
    assert made.input_schema["properties"] == {"key": {"type": "string"}}
    assert made.input_schema["required"] == ["key"]
    assert made.output_schema == {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.parametrize(
    ("responses", "has_schema"),
    [
        ({"200": {"type": "object"}}, True),
        ({"2XX": {"type": "object"}}, True),
        ({"201": {"type": "object"}, "404": {"type": "string"}, "default": {"type": "string"}}, True),
        ({"200": {"type": "object"}, "202": {"type": "string"}}, False),
        ({"200": {"type": "array"}}, False),
        ({"200": True}, False),
        ({"404": {"type": "object"}}, False),
        ({}, False),
    ],
)
def test_an_output_schema_says_what_every_success_is(responses: dict[str, Any], has_schema: bool) -> None:
    written = {code: {"content": {"application/json": {"schema": schema}}} for code, schema in responses.items()}
    assert (plan({"responses": written}).output_schema is not None) is has_schema


def test_parameters_of_an_operation_stand_for_those_of_its_path() -> None:
    item = {
        "parameters": [parameter("a", "query", {"type": "string"}), parameter("b", "query")],
        "get": {"parameters": [parameter("a", "query", {"type": "integer"})]},
    }
    document = {"openapi": "3.1.0", "paths": {"/": item}}
    (operation,) = operations(document)
    assert plan_of(operation, document).input_schema["properties"] == {"a": {"type": "integer"}, "b": True}


def test_parameters_make_a_request_in_their_styles() -> None:
    made = plan(
        {
            "parameters": [
                parameter("id", "path"),
                parameter("each", "query"),
                parameter("commas", "query", explode=False),
                parameter("spaces", "query", style="spaceDelimited"),
                parameter("pipes", "query", style="pipeDelimited"),
                parameter("filter", "query", schema=None, content={"application/json": {"schema": {"type": "object"}}}),
                parameter("flag", "query"),
                parameter("none", "query"),
                parameter("X-List", "header"),
            ]
        },
        path="/a/{id}/b",
    )
    lists = {name: [1, "b c"] for name in ("each", "commas", "spaces", "pipes")}
    others = {"id": [1, 2], "filter": {"a": [1.5]}, "flag": True, "none": None, "X-List": ["a", 2]}
    assert made.target({**lists, **others}) == Target(
        "/a/1,2/b",
        "each=1&each=b%20c&commas=1,b%20c&spaces=1%20b%20c&pipes=1%7Cb%20c&filter=%7B%22a%22%3A%5B1.5%5D%7D&flag=true",
        {"x-list": "a,2"},
        None,
    )


def test_a_value_with_braces_is_no_variable_of_the_path() -> None:
    made = plan({"parameters": [parameter("a", "path"), parameter("b", "path")]}, path="/{a}/{b}")
    assert made.target({"a": "{b}", "b": "x"}).path == "/%7Bb%7D/x"


def test_a_path_of_any_text_is_written_as_a_url_has_it() -> None:
    made = plan({"parameters": [parameter("a", "path")]}, path="/grüße an/{a}:send")
    assert made.target({"a": "%:ü"}).path == "/gr%C3%BC%C3%9Fe%20an/%25%3A%C3%BC:send"


@pytest.mark.parametrize("value", ["..", [".."], "a/b", ["a", "b/c"], ""])
def test_a_path_leads_nowhere_else(value: Any) -> None:
    made = plan({"parameters": [parameter("a", "path")]}, path="/{a}/x")
    with pytest.raises(ToolError, match="a: must be a segment of a path"):
        made.target({"a": value})


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"parameters": [parameter("a", "cookie") | {"required": True}]}, "needs the cookie 'a'"),
        ({"parameters": [parameter("a", "querystring")]}, "'a' in 'querystring'"),
        ({"parameters": [parameter("a b", "header")]}, "not a valid name of a header"),
        ({"requestBody": {"content": {"text/plain\r\nX: 1": {}}}}, "media type"),
    ],
)
def test_an_operation_that_can_not_be_a_tool_is_refused(operation: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        plan(operation)


def test_a_variable_of_the_path_that_nothing_describes_is_a_text() -> None:
    made = plan({"parameters": [parameter("c", "path")]}, path="/a/{b}")
    assert made.input_schema == {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}


def test_a_cookie_that_is_not_required_is_left_out() -> None:
    made = plan({"parameters": [parameter("a", "cookie")]})
    assert made.input_schema == {"type": "object", "properties": {}}
    assert made.target({}) == Target("/x", "", {}, None)


def test_parameters_with_one_name_have_their_places_in_the_names_of_arguments() -> None:
    parameters = [parameter("id", "path"), parameter("id", "query"), parameter("id", "header")]
    made = plan({"parameters": parameters}, path="/{id}")
    assert list(made.input_schema["properties"]) == ["id__path", "id__query", "id__header"]
    target = made.target({"id__path": 1, "id__query": 2, "id__header": 3})
    assert target == Target("/1", "id=2", {"id": "3"}, None)


def test_an_argument_has_a_name_that_apis_of_models_accept() -> None:
    names = ["filter[price]", "$select", "x" * 70, "filter(price)", "@"]
    made = plan({"parameters": [parameter(name, "query", {"type": "string"}) for name in names]})
    properties = made.input_schema["properties"]
    assert list(properties) == ["filter_price", "select", "x" * 64, "filter_price_2", "argument"]
    assert properties["filter_price"]["description"] == "The query parameter filter[price]."
    assert made.target({"filter_price": 1, "argument": 2}).query == "filter%5Bprice%5D=1&%40=2"


def test_a_body_beside_a_parameter_of_that_name_has_a_number() -> None:
    made = plan({"parameters": [parameter("body", "query")], **body({"type": "array"})})
    assert made.target({"body": 1, "body_2": [2]}) == Target(
        "/x", "body=1", {"content-type": "application/json"}, b"[2]"
    )


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"type": "array", "items": {"type": "integer"}}, True),
        ({"type": "object", "properties": {"a": True}, "additionalProperties": {"type": "integer"}}, True),
        ({"type": "object", "properties": {"a": True}, "minProperties": 1}, True),
        ({"anyOf": [{"type": "object"}, {"type": "string"}]}, True),
        ({"type": "object"}, True),
        ({"type": "object", "properties": {"a": True}, "required": ["a"]}, False),
    ],
)
def test_a_body_that_says_more_than_its_members_is_one_argument(schema: dict[str, Any], required: bool) -> None:
    made = plan(body(schema, required=required, description="All of it"))
    assert made.input_schema["properties"] == {"body": {**schema, "description": "All of it"}}
    assert ("required" in made.input_schema) is required
    assert made.target({"body": [1]}).body == b"[1]"
    assert made.target({}).body is None


@pytest.mark.parametrize(("required", "sent"), [(True, b"{}"), (False, None)])
def test_a_body_of_which_nothing_is_given_is_sent_if_it_is_required(required: bool, sent: bytes | None) -> None:
    made = plan(body({"type": "object", "properties": {"a": {"type": "integer"}}}, required=required))
    assert made.target({}).body == sent
    assert made.target({"a": None}).body == b'{"a":null}'


def test_text_in_place_of_an_object_is_refused() -> None:
    with pytest.raises(RegistrationError, match="in the place of an object"):
        operations({"openapi": "3.1.0", "paths": {"/x": "nothing"}})


IDENTITY = (
    "Authorization",
    "Proxy-Authorization",
    "Cookie",
    "Host",
    "Forwarded",
    "X-API-Key",
    "X-Functions-Key",
    "Client-Cert",
    "Remote-User",
    "Remote-Groups",
    "X-Forwarded-For",
    "X-Forwarded-Port",
    "X-Forwarded-User",
    "X-Forwarded-Email",
    "X-Forwarded-Client-Cert",
    "X-Original-Forwarded-For",
    "X-MS-CLIENT-PRINCIPAL",
    "X-MS-CLIENT-PRINCIPAL-ID",
    "X-MS-TOKEN-AAD-ID-TOKEN",
    "X-ARR-ClientCert",
    "X-Azure-ClientIP",
    "X-Auth-Request-User",
    "X-Auth-Request-Email",
    "X-Auth-Request-Access-Token",
    "X-Remote-User",
    "X-WEBAUTH-USER",
    "X-Authenticated-User",
    "X-Amzn-Oidc-Identity",
    "X-Amzn-Oidc-Data",
    "X-Amzn-Mtls-Clientcert",
    "X-Goog-Authenticated-User-Email",
    "X-Goog-IAP-JWT-Assertion",
    "CF-Connecting-IP",
    "CF-Access-Jwt-Assertion",
    "CF-Access-Authenticated-User-Email",
    "True-Client-IP",
    "X-Client-IP",
    "X-Real-IP",
    "X-Cluster-Client-IP",
    "Fastly-Client-IP",
    "X-Client-Certificate",
    "X-Client-Cert",
    "X-Client-DN",
    "SSL-Client-S-DN",
    "X-SSL-Client-Cert",
    "X-SSL-Client-Verify",
    "X-Envoy-External-Address",
    "X-Pomerium-Jwt-Assertion",
    "X-authentik-username",
    "X-Vouch-User",
    "X-Consumer-Username",
    "X-Credential-Identifier",
    "Tailscale-User-Login",
    "OIDC_CLAIM_sub",
    "Shib-Session-ID",
    "X-User-ID",
)


@pytest.mark.parametrize("name", IDENTITY)
def test_a_header_that_says_who_is_calling_is_no_argument(name: str) -> None:
    written = [name, name.lower(), name.upper(), name.replace("-", "_"), name.replace("_", "-")]
    parameters = [parameter(header, "header") for header in dict.fromkeys(written)]
    made = plan({"parameters": [*parameters, parameter("X-Own", "header")]})
    assert list(made.input_schema["properties"]) == ["X-Own"]
    assert made.target({name: "admin", "X-Own": "a"}).headers == {"x-own": "a"}


def test_a_header_that_goes_along_is_no_argument_in_any_spelling() -> None:
    operation = {"parameters": [parameter("x_tenant", "header"), parameter("a", "query")]}
    document = {"openapi": "3.1.0", "paths": {"/x": {"get": operation}}}
    made = plan_of(operations(document)[0], document, forwarded=["X-Tenant"])
    assert list(made.input_schema["properties"]) == ["a"]


def test_an_id_that_has_no_letter_of_a_name_is_no_name() -> None:
    document = {"openapi": "3.0.3", "paths": {"/a": {"get": {"operationId": "!!!"}, "put": {"operationId": 5}}}}
    assert [operation.name for operation in operations(document)] == ["get_a", "5"]


def test_extensions_among_the_paths_are_left_alone() -> None:
    document = {"openapi": "3.1.0", "paths": {"x-internal": True, "/a": {"get": {}}}}
    assert [operation.path for operation in operations(document)] == ["/a"]


@pytest.mark.parametrize("paths", [[1], {"/a": {"get": {"tags": None}}}, {"/a": {"get": {"parameters": None}}}])
def test_a_document_that_is_none_is_refused_in_words(paths: Any) -> None:
    with pytest.raises(RegistrationError, match="not valid OpenAPI"):
        operations({"openapi": "3.1.0", "paths": paths})


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "operation",
    [
        {"parameters": [{"in": "query"}]},
        {"responses": []},
        body({"type": "object", "properties": ["a"]}),
        body(nested(2000)),
    ],
)
def test_an_operation_that_can_not_be_read_is_refused_in_words(operation: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match="not valid OpenAPI"):
        plan(operation)
