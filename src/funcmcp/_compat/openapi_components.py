"""Tools, resources and templates that send requests to an API: those of `OpenAPIProvider`."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.openapi.api_client import query_of, request_for
from funcmcp._authoring.openapi.http_requests import is_reserved
from funcmcp._compat.components import Resource, ResourceTemplate, Tool
from funcmcp._compat.content import ResourceContent, ResourceResult, ToolResult
from funcmcp._compat.dependencies import get_http_headers
from funcmcp._compat.errors import ResourceError, ToolError, ValidationError
from funcmcp._compat.openapi_arguments import WRAPPED, media_type_of, output_schema_of
from funcmcp._objects.mappings import without_none

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.openapi.operations import OperationPlan

    Send: TypeAlias = Callable[[OperationPlan, Mapping[str, Any]], Any]

_MAX_ERROR = 1000
_NOT_IN_NAMES = re.compile(r"\W")
"""What names of parameters of Python do not contain."""

_TOO_MANY = 429
_SUCCESS = range(200, 300)
_REDIRECT = range(300, 400)


class UpstreamError(Exception):
    """An API answered with an error, or not at all."""


@dataclass(frozen=True)
class API:
    """The API of a document.

    Attributes:
        client: The ``httpx2.AsyncClient`` or ``httpx.AsyncClient`` for its requests.
        base_url: Its URL.
    """

    client: Any
    base_url: str

    async def send(
        self, plan: OperationPlan, arguments: Mapping[str, Any], error_type: type[Exception] = ToolError
    ) -> Any:
        """Send the request of an operation and return its response.

        Headers of the MCP request are sent as well, as in FastMCP: without credentials, and not in place of others.

        Args:
            plan: The operation.
            arguments: The arguments of the request.
            error_type: The class of errors whose text the model needs.

        Raises:
            UpstreamError: The API answered with an error.
            Exception: One of *error_type*: the API did not answer in time, or too many requests were sent.
        """
        target = plan.target({name: value for name, value in arguments.items() if name in plan.arguments})
        url = self.base_url.rstrip("/") + target.path + query_of(target.query, str(self.client.params))
        request = request_for(self.client, plan.operation.method, url, target.headers, target.body)
        for name, value in get_http_headers().items():
            if name not in request.headers and not is_reserved(name):
                request.headers[name] = value
        try:
            response = await self.client.send(request)
        except Exception as error:
            if "Timeout" in type(error).__name__:
                raise error_type("Upstream request timed out, please retry") from error
            raise
        if response.status_code == _TOO_MANY:
            raise error_type("Rate limited by upstream API, please retry later")
        _check(response)
        return response


def _check(response: Any) -> None:
    """Raise the error for a response that is not successful."""
    status = response.status_code
    if status in _SUCCESS:
        return
    text = f"HTTP error {status}: {response.reason_phrase}"
    location = response.headers.get("location")
    if status in _REDIRECT and location:
        text += f" - Location: {location}"
    body = _error_body(response)
    raise UpstreamError(f"{text} - {body}" if body else text)


def _error_body(response: Any) -> str:
    """Return the text of an error for the model: JSON or a plain text, and no page of HTML."""
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    body: str = response.text
    if media_type in {"text/html", "application/xhtml+xml"}:
        return ""
    try:
        body = json.dumps(json.loads(body), ensure_ascii=False)
    except ValueError:
        if body.lstrip().lower().startswith(("<!doctype html", "<html")):
            return ""
    return body if len(body) <= _MAX_ERROR else f"{body[:_MAX_ERROR]}… (truncated)"


class _Settable:
    """Attributes that ``mcp_component_fn`` sets, in the options of a component."""

    options: dict[str, Any]

    @property
    def description(self) -> Any:
        """The description."""
        return self.options.get("description")

    @description.setter
    def description(self, value: Any) -> None:
        self.options["description"] = value

    @property
    def title(self) -> Any:
        """The title."""
        return self.options.get("title")

    @title.setter
    def title(self, value: Any) -> None:
        self.options["title"] = value

    @property
    def tags(self) -> Any:
        """The tags, a set that can be changed."""
        return self.options.setdefault("tags", set())

    @tags.setter
    def tags(self, value: Any) -> None:
        self.options["tags"] = set(value)

    @property
    def meta(self) -> Any:
        """The ``_meta``."""
        return self.options.get("meta")

    @meta.setter
    def meta(self, value: Any) -> None:
        self.options["meta"] = value

    @property
    def annotations(self) -> Any:
        """The annotations."""
        return self.options.get("annotations")

    @annotations.setter
    def annotations(self, value: Any) -> None:
        self.options["annotations"] = value


class OpenAPITool(_Settable, Tool):
    """A tool that sends a request.

    Args:
        api: The API.
        plan: The plan of the operation.
        name: The name.
        options: The description and the tags.
        validates_output: Whether the output schema is that of the document.
    """

    def __init__(
        self, api: API, plan: OperationPlan, name: str, options: dict[str, Any], *, validates_output: bool
    ) -> None:
        super().__init__(None, name, parameters={"type": "object", "additionalProperties": True}, **options)
        self._api = api
        self._plan = plan
        self.input_schema: dict[str, Any] = plan.input_schema
        self._output_schema = output_schema_of(plan, validates=validates_output)

    @property
    def parameters(self) -> dict[str, Any]:
        """The input schema."""
        return self.input_schema

    @parameters.setter
    def parameters(self, value: dict[str, Any]) -> None:
        self.input_schema = value

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The output schema; None if it has none."""
        return self._output_schema

    @output_schema.setter
    def output_schema(self, value: dict[str, Any] | None) -> None:
        self._output_schema = value

    def finished(self, feature: Any) -> Any:
        """Return the feature with the schemas of the document, which clients see and the API checks."""

        def describe() -> Mapping[str, Any]:
            members = {"inputSchema": self.input_schema, "outputSchema": self.output_schema}
            return without_none({**feature.describe(), **members})

        return replace(feature, describe=describe)

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Send the request and return the response as a result.

        Raises:
            ValidationError: An argument of the path is missing.
            UpstreamError: The API answered with an error, or not at all.
        """
        places = [place for place, _ in self._plan.places if place.location == "path"]
        missing = [place.argument for place in places if arguments.get(place.argument) is None]
        if missing:
            raise ValidationError(f"Missing required arguments: {', '.join(missing)}")
        response = await self._api.send(self._plan, arguments)
        try:
            value = response.json()
        except ValueError:
            return ToolResult(content=response.text)
        schema = self.output_schema
        if isinstance(value, dict) and not (schema is not None and WRAPPED in schema):
            return ToolResult(structured_content=value)
        meta = {"fastmcp": {"wrap_result": True}} if schema is None else None
        return ToolResult(structured_content={"result": value}, meta=meta)


class OpenAPIResource(_Settable, Resource):
    """A resource that sends a request.

    Args:
        api: The API.
        plan: The plan of the operation.
        uri: The URI.
        name: The name.
        options: The description and the tags.
        arguments: The arguments of the request.
    """

    def __init__(
        self,
        api: API,
        plan: OperationPlan,
        uri: str,
        name: str,
        options: dict[str, Any],
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(None, uri, name, **{"mime_type": media_type_of(plan), **options})
        self._api = api
        self._plan = plan
        self._arguments = dict(arguments or {})

    async def read(self) -> ResourceResult:
        """Send the request and return the response as contents."""
        response = await self._api.send(self._plan, self._arguments, ResourceError)
        return contents_of(response, self.mime_type)


class OpenAPIResourceTemplate(_Settable, ResourceTemplate):
    """A resource template that sends a request with the values of a path.

    Args:
        api: The API.
        plan: The plan of the operation.
        uri_template: The URI template.
        name: The name.
        options: The description and the tags.
    """

    def __init__(self, api: API, plan: OperationPlan, uri_template: str, name: str, options: dict[str, Any]) -> None:
        places = {_NOT_IN_NAMES.sub("_", place.name): place for place, _ in plan.places if place.location == "path"}

        async def read(**values: str) -> ResourceResult:
            arguments = {places[name].argument: value for name, value in values.items()}
            return contents_of(await api.send(plan, arguments, ResourceError), self.mime_type)

        names = sorted(places)
        parameters = [inspect.Parameter(item, inspect.Parameter.KEYWORD_ONLY, annotation=str) for item in names]
        read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # of any function
        read.__annotations__ = dict.fromkeys(names, str)
        super().__init__(read, uri_template, name, **{"mime_type": media_type_of(plan), **options})


def contents_of(response: Any, mime_type: str) -> ResourceResult:
    """Return a response as the contents of a resource: JSON, a text or bytes."""
    content_type = response.headers.get("content-type", "").lower()
    media_type = content_type.partition(";")[0].strip()
    if media_type == "application/json" or media_type.endswith("+json"):
        content = ResourceContent(json.dumps(response.json()), media_type)
    elif "text/" in content_type or "application/xml" in content_type:
        content = ResourceContent(response.text, mime_type)
    else:
        content = ResourceContent(response.content, mime_type)
    return ResourceResult([content])
