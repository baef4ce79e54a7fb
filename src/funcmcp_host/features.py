"""Tools, resources, templates and prompts that call the functions of an app.

Each feature is made from a trigger and is a feature like any other to the server. `AppFeatures.update` brings the
server in step with an app's functions: features whose definition has not changed stay, so that clients hear of real
changes only.
"""

from __future__ import annotations

import json
import logging
import re
import textwrap
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from funcmcp import InvalidParams, MCPError, RegistrationError
from funcmcp._adapters.azure.triggers.binding_json import URI_VARIABLE
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import INTERNAL_ERROR
from funcmcp._protocol.uri_template import InvalidTemplateError, URITemplate
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.log import quote
from funcmcp_host import schemas
from funcmcp_host.app_rules.trigger_rules import name_on_azure
from funcmcp_host.bindings import (
    BindingError,
    DurableTrigger,
    Function,
    HTTPTrigger,
    PromptTrigger,
    ResourceTrigger,
    ToolTrigger,
    read_function,
)
from funcmcp_host.blobs import BlobError
from funcmcp_host.expressions import ExpressionError, names_of
from funcmcp_host.extras import Extras, Storage, plan_extras
from funcmcp_host.invocation import prompt_trigger, resource_trigger, tool_trigger
from funcmcp_host.results import ReturnError, objects_only, prompt_result, resource_result, tool_result
from funcmcp_host.return_contracts import warning_for
from funcmcp_host.workers.worker import FunctionFailed, Invocation, Outcome, Value, WorkerGone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.registry import Registry
    from funcmcp.middleware import RequestContext
    from funcmcp_host.invocation import Trigger
    from funcmcp_host.workers.worker import FunctionInfo, LanguageWorker

    Feature: TypeAlias = Tool | Resource | ResourceTemplate | Prompt

_log = logging.getLogger("funcmcp.host")
_LOGGED_TEXT = 2000

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_FAILURES = (FunctionFailed, ReturnError, BlobError, ExpressionError, TimeoutError, WorkerGone)


class FeatureKey(NamedTuple):
    """What identifies a feature: its kind, and its name or URI."""

    kind: str
    name: str


class LeftOut(NamedTuple):
    """A function that is not served, and why.

    Attributes:
        function: The function's name.
        reason: Why it is not served.
        is_listed: Whether clients see it all the same; each call answers with an error.
    """

    function: str
    reason: str
    is_listed: bool = False


@dataclass(frozen=True, slots=True)
class InvocationPlan:
    """How a feature calls its function.

    Attributes:
        function: The function's name.
        parameter: The function's parameter for the trigger.
        convert: Returns the result of the MCP request for what the function returned.
        extras: Its bindings beside the trigger.
        required: Arguments that a caller must send.
        check: Returns the errors of a tool's arguments, each as a path and a phrase; None if they are not checked.
        check_output: Returns the errors of structured content, in the same way; None without an output schema.
        fault: Why the function can't be called; None if it can.
    """

    function: str
    parameter: str
    convert: Callable[..., dict[str, Any]]
    extras: Extras
    required: tuple[str, ...] = ()
    check: Callable[[Any], list[tuple[str, str]]] | None = None
    check_output: Callable[[Any], list[tuple[str, str]]] | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """What an app's functions turned out to be.

    Attributes:
        left_out: The functions that are not served.
        http: The functions with HTTP triggers.
        durable: The orchestrators, activities and entities.
    """

    left_out: Sequence[LeftOut]
    http: Sequence[Function]
    durable: Sequence[Function] = ()


class AppFeatures:
    """The features of one function app.

    Args:
        catalog: The features of the server.
        worker: Runs the functions.
        storage: Where blobs and queues are.
        seconds: The time that a call may take; None for any time.
        strict: Whether arguments are checked against the tool's input schema before a call.

    Attributes:
        seconds: The argument, which may change.
    """

    def __init__(
        self, catalog: Catalog, worker: LanguageWorker, storage: Storage, *, seconds: float | None, strict: bool = False
    ) -> None:
        self._catalog = catalog
        self._worker = worker
        self._storage = storage
        self.seconds = seconds
        self._strict = strict
        self._plans: dict[FeatureKey, InvocationPlan] = {}
        self._definitions: dict[FeatureKey, str] = {}
        self._logged: set[tuple[str, str]] = set()

    def update(self, functions: Sequence[FunctionInfo]) -> Update:
        """Offer the features of these functions, and no others."""
        left_out: list[LeftOut] = []
        http: list[Function] = []
        durable: list[Function] = []
        features: dict[FeatureKey, tuple[Feature, InvocationPlan]] = {}
        for function_info in functions:
            try:
                function = read_function(function_info)
                if isinstance(function.trigger, HTTPTrigger):
                    http.append(function)
                    continue
                if isinstance(function.trigger, DurableTrigger):
                    durable.append(function)
                    continue
                key, feature, plan = self._feature(function)
                _check_unique(key, features)
                features[key] = feature, plan
                if plan.fault is not None:
                    left_out.append(LeftOut(function_info.name, plan.fault, is_listed=True))
            except (BindingError, InvalidTemplateError) as error:
                left_out.append(LeftOut(function_info.name, str(error)))
        self._replace(features, left_out)
        return Update(left_out, http, durable)

    def _replace(self, features: dict[FeatureKey, tuple[Feature, InvocationPlan]], left_out: list[LeftOut]) -> None:
        definitions = {key: json.dumps(feature.describe()) for key, (feature, _) in features.items()}
        for key, definition in list(self._definitions.items()):
            if definitions.get(key) != definition:
                self._remove(key)
        for key, (feature, plan) in features.items():
            if key not in self._definitions:
                try:
                    self._catalog.add(feature)
                except RegistrationError as error:
                    left_out.append(LeftOut(plan.function, str(error)))
                    continue
                self._definitions[key] = definitions[key]
            self._plans[key] = plan

    def _remove(self, key: FeatureKey) -> None:
        catalog = self._catalog
        registries: dict[str, Registry[Any]] = {
            "tool": catalog.tools,
            "resource": catalog.resources,
            "template": catalog.templates,
            "prompt": catalog.prompts,
        }
        registries[key.kind].remove(key.name)
        del self._definitions[key]
        del self._plans[key]

    def _feature(self, function: Function) -> tuple[FeatureKey, Feature, InvocationPlan]:
        trigger = function.trigger
        if isinstance(trigger, (HTTPTrigger, DurableTrigger)):
            raise BindingError("Its trigger is not one of MCP.")
        fault = None
        try:
            extras = plan_extras(function.extras, self._storage, names_of(trigger), function.name)
        except BindingError as error:
            extras, fault = Extras({}, {}), str(error)
        plan = InvocationPlan(function.name, trigger.parameter, resource_result, extras, fault=fault)
        if isinstance(trigger, ToolTrigger):
            return self._tool(trigger, plan)
        if isinstance(trigger, ResourceTrigger):
            return self._resource(trigger, plan)
        return self._prompt(trigger, plan)

    def _tool(self, trigger: ToolTrigger, plan: InvocationPlan) -> tuple[FeatureKey, Feature, InvocationPlan]:
        key = FeatureKey("tool", trigger.name)
        definition = schemas.tool_definition(trigger)
        uses_schema = trigger.uses_result_schema and not plan.extras.has_return_output
        convert = partial(tool_result, name=trigger.name, uses_result_schema=uses_schema)
        tool = Tool(trigger.name, lambda: definition, partial(self._call_tool, key), time_limit=None)
        check = _checker(trigger.name, definition["inputSchema"]) if self._strict else None
        check_output = None if trigger.output_schema is None else _output_checker(trigger.output_schema)
        return (
            key,
            tool,
            replace(
                plan, convert=convert, required=schemas.required_of(trigger), check=check, check_output=check_output
            ),
        )

    def _prompt(self, trigger: PromptTrigger, plan: InvocationPlan) -> tuple[FeatureKey, Feature, InvocationPlan]:
        key = FeatureKey("prompt", trigger.name)
        definition = schemas.prompt_definition(trigger)
        prompt = Prompt(trigger.name, lambda: definition, partial(self._get_prompt, key), time_limit=None)
        required = tuple(argument["name"] for argument in trigger.arguments if argument.get("required") is True)
        uses_schema = trigger.uses_result_schema and not plan.extras.has_return_output
        convert = partial(prompt_result, uses_result_schema=uses_schema)
        return key, prompt, replace(plan, convert=convert, required=required)

    def _resource(self, trigger: ResourceTrigger, plan: InvocationPlan) -> tuple[FeatureKey, Feature, InvocationPlan]:
        plan = replace(plan, convert=partial(resource_result, mime_type=trigger.mime_type))
        if "{" not in trigger.uri and "}" not in trigger.uri:
            if not _SCHEME.match(trigger.uri):
                raise BindingError(f"The URI {trigger.uri!r} must begin with a scheme, such as file://.")
            key = FeatureKey("resource", trigger.uri)
            definition = schemas.resource_definition(trigger, is_template=False)
            return key, Resource(trigger.uri, lambda: definition, partial(self._read, key, None), time_limit=None), plan
        definition = schemas.resource_definition(trigger, is_template=True)
        # Names of variables may have characters that URITemplate does not take, such as hyphens.
        template = URITemplate(URI_VARIABLE.sub(lambda match: "{" + _plain_name(match[1]) + "}", trigger.uri))
        key = FeatureKey("template", template.text)
        read = partial(self._read, key, _RawTemplate(trigger.uri))
        return key, ResourceTemplate(template, lambda: definition, read, time_limit=None), plan

    async def _call_tool(self, key: FeatureKey, context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        plan = self._plans[key]
        if plan.fault is not None:
            return _error_result(f"The tool {key.name} can't run here. {plan.fault}")
        _check_required(context, plan.required, "tool properties")
        if plan.check is not None:
            errors = plan.check(context.request.params.get("arguments") or {})
            if errors:
                from funcmcp._authoring.schemas.argument_errors import wrong_arguments  # noqa: PLC0415 - only for errors

                return _error_result(str(wrong_arguments(errors)))
        try:
            outcome = await self._invoke(plan, tool_trigger(context, plan.parameter))
            result = self._converted(plan, outcome.value)
        except _FAILURES as error:
            self._log_failure(plan, error)
            return _error_result(_text_of(error, f"An error occurred invoking '{key.name}'."))
        if plan.check_output is not None:
            self._log_output(plan, plan.check_output, result)
        return objects_only(result) if context.client.revision.structured_content == "object" else result

    async def _read(
        self, key: FeatureKey, template: _RawTemplate | None, context: RequestContext, uri: str, _values: Values
    ) -> dict[str, Any]:
        plan = self._plans[key]
        _check_usable(plan)
        variables = {} if template is None else template.values(uri)
        try:
            outcome = await self._invoke(plan, resource_trigger(context, plan.parameter, uri, variables))
            return self._converted(plan, outcome.value, uri=uri)
        except _FAILURES as error:
            self._log_failure(plan, error)
            raise MCPError(INTERNAL_ERROR, _text_of(error, "An error occurred.")) from None

    async def _get_prompt(self, key: FeatureKey, context: RequestContext, _arguments: dict[str, str]) -> dict[str, Any]:
        plan = self._plans[key]
        _check_usable(plan)
        _check_required(context, plan.required, "prompt arguments")
        try:
            outcome = await self._invoke(plan, prompt_trigger(context, plan.parameter))
            return self._converted(plan, outcome.value)
        except _FAILURES as error:
            self._log_failure(plan, error)
            raise MCPError(INTERNAL_ERROR, _text_of(error, "An error occurred.")) from None

    async def _invoke(self, plan: InvocationPlan, trigger: Trigger) -> Outcome:
        inputs = {plan.parameter: trigger.value, **await plan.extras.read(trigger)}
        outcome = await self._worker.invoke(Invocation(plan.function, inputs, trigger.metadata), self.seconds)
        outputs = dict(outcome.outputs)
        if plan.extras.has_return_output:
            outputs.setdefault("$return", outcome.value)
        await plan.extras.write(trigger, outputs)
        return outcome

    def _converted(self, plan: InvocationPlan, value: Value, **options: Any) -> dict[str, Any]:
        """Return the result for a return value; log once what Azure would do otherwise."""
        deviations: set[str] = set()
        result = plan.convert(value, deviations, **options)
        for name in sorted(deviations):
            if (plan.function, name) not in self._logged:
                self._logged.add((plan.function, name))
                _log.warning("The function %s: %s", plan.function, warning_for(name))
        return result

    def _log_output(
        self, plan: InvocationPlan, check: Callable[[Any], list[tuple[str, str]]], result: Mapping[str, Any]
    ) -> None:
        """Log once that clients refuse a result, which is served as Azure does."""
        logged = (plan.function, "output schema")
        if result.get("isError") or logged in self._logged:
            return
        content = result.get("structuredContent")
        errors = [] if content is None else check(content)
        if content is None:
            reason = "has no structured content"
        elif errors:
            path, phrase = errors[0]
            reason = f"does not fit it ({f'{path} ' if path else ''}{phrase})"
        else:
            return
        self._logged.add(logged)
        _log.warning(
            "The function %s: Its tool has an output schema, but its result %s. Clients on the official SDKs refuse "
            "such a result. Return structured content that fits, with useResultSchema, or leave outputSchema out.",
            plan.function,
            quote(reason, _LOGGED_TEXT),
        )

    def _log_failure(self, plan: InvocationPlan, error: Exception) -> None:
        text = str(error)
        if self.seconds is not None and isinstance(error, TimeoutError):
            text = f"It did not finish within {seconds_text(self.seconds)}."
        _log.error("The function %s failed. %s", plan.function, quote(text, _LOGGED_TEXT))
        trace = getattr(error, "trace", "")
        if trace:  # the app's own text: no line of it may look like a record
            _log.error("The traceback of %s:\n%s", plan.function, textwrap.indent(trace, "  | ", lambda _: True))


def _check_unique(key: FeatureKey, features: Mapping[FeatureKey, tuple[Feature, InvocationPlan]]) -> None:
    """Raise BindingError for a feature that Azure takes for that of another function, and refuses."""
    for other, (_, plan) in features.items():
        if other.kind == key.kind and name_on_azure(*other) == name_on_azure(*key):
            raise BindingError(
                f"Azure does not distinguish the {key.kind} {key.name!r} from {other.name!r} of {plan.function}. "
                "Rename one of them."
            )


def _check_usable(plan: InvocationPlan) -> None:
    if plan.fault is not None:
        raise MCPError(INTERNAL_ERROR, f"The function {plan.function} can't run here. {plan.fault}")


def _text_of(error: Exception, general: str) -> str:
    """Return what the client reads of a failure: never an exception's own text."""
    if isinstance(error, TimeoutError):
        return "The function did not finish in time. The call may have had an effect."
    if isinstance(error, (WorkerGone, BlobError, ExpressionError)):
        return str(error)
    return general


def _error_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _check_required(context: RequestContext, required: Sequence[str], subject: str) -> None:
    """Raise InvalidParams, in the words of the MCP extension, if an argument is missing or null."""
    arguments = context.request.params.get("arguments")
    values: Mapping[str, Any] = arguments if isinstance(arguments, dict) else {}
    missing = [name for name in required if values.get(name) is None]
    if missing:
        raise InvalidParams(f"One or more required {subject} are missing values. Please provide: {', '.join(missing)}")


def _checker(tool: str, schema: Mapping[str, Any]) -> Callable[[Any], list[tuple[str, str]]]:
    """Return what lists the errors of a tool's arguments; raise BindingError if the schema is not valid."""
    from funcmcp._authoring.schemas.handwritten_schema import schema_checker  # noqa: PLC0415 - only with --strict

    try:
        return schema_checker(schema, f"The input schema of {tool}")
    except RegistrationError as error:
        raise BindingError(str(error)) from error


def _output_checker(schema: Mapping[str, Any]) -> Callable[[Any], list[tuple[str, str]]]:
    """Return what lists the errors of structured content; nothing for a schema that can't be checked here."""
    from funcmcp._authoring.schemas.handwritten_schema import schema_checker  # noqa: PLC0415 - for few tools

    try:
        return schema_checker(schema, "The output schema")
    except RegistrationError:
        return lambda _: []


def _plain_name(variable: str) -> str:
    name = _NOT_IN_NAMES.sub("_", variable)
    return f"_{name}" if name[:1].isdigit() else name


class _RawTemplate:
    """Takes the values of a template's variables from a URI as they are, not decoded.

    As on Azure (BuildRegexCore of the extension's ResourceUriHelper), a variable takes as many characters as it can:
    of ``a://1-2-3``, ``a://{x}-{y}`` has ``1-2`` and ``3``.

    Args:
        text: The template with the names that the app gave the variables.
    """

    def __init__(self, text: str) -> None:
        self._names = URI_VARIABLE.findall(text)
        self._literals = URI_VARIABLE.split(text)[::2]

    def values(self, uri: str) -> dict[str, str]:
        """Return the values by the app's names, of a URI that matches the template."""
        values = {}
        end = len(uri) - len(self._literals[-1])
        for name, literal in zip(self._names[:0:-1], self._literals[-2:0:-1], strict=True):
            start = uri.rfind(literal, 0, end - 1) + len(literal)  # a value has at least one character
            values[name] = uri[start:end]
            end = start - len(literal)
        values[self._names[0]] = uri[len(self._literals[0]) : end]
        return dict(reversed(values.items()))
