"""Calls of a resource's function: the variables of a URI in, a ``ReadResourceResult`` out.

Source: 2026-07-28 "server/resources".
"""

from __future__ import annotations

import functools
from collections.abc import Sequence, Set
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_origin

from funcmcp._authoring.calling.arguments import is_field, reader_of, text_parts_of
from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.calling.function_call import FunctionCall
from funcmcp._authoring.signatures.annotations import marks_of, union_members, without_marks
from funcmcp._authoring.values.resource_contents import ContentsWriter
from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._server.catalog.features import EncodedResult
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from funcmcp._authoring.calling.function_call import FeatureFunction
    from funcmcp._authoring.signatures.signature import Parameter
    from funcmcp._protocol.uri_template import URITemplate, Values
    from funcmcp._server.calls.context import RequestContext


class RequestedURI(NamedTuple):
    """A URI that a client reads, with the values of its variables."""

    uri: str
    values: Values


class ResourceRead(FunctionCall[RequestedURI, EncodedResult]):
    """Reads one resource, or those of one template.

    Args:
        feature: The function.
        template: The template of the URIs; one resource has a template without variables.
        mime_type: The media type that the author chose, if any.
        ui: The ``_meta.ui`` of the contents.
    """

    def __init__(
        self,
        feature: FeatureFunction,
        *,
        template: URITemplate,
        mime_type: str | None,
        ui: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(feature)
        self._template = template
        self._mime_type = mime_type
        self._ui = ui
        self._writer: ContentsWriter

    def read(self, context: RequestContext, uri: str, values: Values) -> Coroutine[Any, Any, EncodedResult]:
        """Read a URI: a `ResourceHandler`."""
        return self.run(context, RequestedURI(uri, values), lambda value: self._writer.result(uri, value))

    def _new_renderer(self) -> Callable[[Any], EncodedResult]:
        self._writer = ContentsWriter(self.name, self.signature.returns(), mime_type=self._mime_type, ui=self._ui)
        return functools.partial(self._writer.result, self._template.text)  # `read` passes the URI instead

    def _new_reader(self) -> Callable[[RequestedURI], dict[str, Any]]:
        parameters = self.plan.arguments
        for parameter in parameters:
            if parameter.name not in self._template.variables:
                raise RegistrationError(
                    f"{self.name} has a parameter {parameter.name!r}, which is not a variable of "
                    f"{self._template.text}. Add the variable, or register the parameter's type as a service."
                )
        check_lists(self.name, self._template, parameters)
        value_readers = self._value_readers()
        validate = reader_of(text_parts_of(parameters, self.name), lax=True)

        def read(requested: RequestedURI) -> dict[str, Any]:
            values: dict[str, Any] = {**requested.values}
            for name, read_value in value_readers.items():
                if name in values:
                    values[name] = read_value(values[name])
            try:
                return validate(values)
            except ToolError as error:
                raise InvalidParams(f"The URI does not fit: {error}", {"uri": requested.uri}) from None

        return read

    def _value_readers(self) -> dict[str, Callable[[Any], Any]]:
        """Return functions that prepare the values of some variables for validation.

        A path that the function takes as one text is joined again, and the text of a choice stands for its value.
        """
        readers: dict[str, Callable[[Any], Any]] = {}
        for name, annotation, _ in self.plan.arguments:
            if name in self._template.exploded and without_marks(annotation) is str:
                readers[name] = "/".join
        return readers

    def _new_context(self, context: RequestContext, arguments: RequestedURI) -> Context:
        return Context(context, self._services.lifespans, self.name, uri=arguments.uri)


def check_lists(name: str, template: URITemplate, parameters: Iterable[Parameter]) -> None:
    """Check that variables with several values are lists, and that others are not.

    Raises:
        RegistrationError: A parameter and its variable differ in this. The text says how to write the template.
    """
    multiple = template.exploded | template.repeated
    for variable, annotation, _ in parameters:
        if variable in template.variables and variable not in multiple and _is_list(annotation):
            expression = f"{{?{variable}*}}" if variable in template.optional else f"{{{variable}*}}"
            raise RegistrationError(f"{name}: {variable!r} is a list, so write {expression} in the URI.")
        if variable in template.repeated and _is_single(annotation):
            raise RegistrationError(f"{name}: {{?{variable}*}} takes several values, so {variable!r} must be a list.")


def _is_list(annotation: Any) -> bool:
    """Return whether only a list fits a type. A mark of the author's may make a list of a text."""
    if get_origin(annotation) is Annotated and not all(map(_is_description, marks_of(annotation))):
        return False
    members = [member for member in union_members(annotation) if member is not type(None)]
    if members != [annotation]:
        return all(map(_is_list, members))
    return _is_kind_of(annotation, (list, tuple, set, frozenset, Sequence, Set)) and not _is_single(annotation)


def _is_description(mark: Any) -> bool:
    """Return whether a mark leaves a type unchanged."""
    return isinstance(mark, str) or is_field(mark)


def _is_single(annotation: Any) -> bool:
    if any(not isinstance(mark, str) for mark in marks_of(annotation)):
        return False
    return _is_kind_of(without_marks(annotation), (str, bytes, int, float, Enum))


def _is_kind_of(bare: Any, kinds: tuple[type, ...]) -> bool:
    origin = get_origin(bare) or bare
    return isinstance(origin, type) and issubclass(origin, kinds)
