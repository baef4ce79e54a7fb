"""The types of the protocol under their names in ``mcp.types``, for servers and their tests.

They have the members of all revisions. An object can be made with the specification's names (``mimeType``), as in
version 1 of the official SDK, or with those of Python (``mime_type``), as in version 2, and its members can be read by
both. What a function returns of them reaches the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from funcmcp._protocol import errors

PARSE_ERROR = errors.PARSE_ERROR
INVALID_REQUEST = errors.INVALID_REQUEST
METHOD_NOT_FOUND = errors.METHOD_NOT_FOUND
INVALID_PARAMS = errors.INVALID_PARAMS
INTERNAL_ERROR = errors.INTERNAL_ERROR
HEADER_MISMATCH = errors.HEADER_MISMATCH
MISSING_REQUIRED_CLIENT_CAPABILITY = errors.MISSING_CLIENT_CAPABILITY
UNSUPPORTED_PROTOCOL_VERSION = errors.UNSUPPORTED_PROTOCOL_VERSION
URL_ELICITATION_REQUIRED = -32042
CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
JSONRPC_VERSION = "2.0"

Role: TypeAlias = Literal["user", "assistant"]
IconTheme: TypeAlias = Literal["light", "dark"]
LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
IncludeContext: TypeAlias = Literal["none", "thisServer", "allServers"]
StopReason: TypeAlias = Literal["endTurn", "stopSequence", "maxTokens", "toolUse"] | str
ResultType: TypeAlias = Literal["complete", "input_required"] | str
RequestId: TypeAlias = str | int
ProgressToken: TypeAlias = str | int


class MCPModel(BaseModel):
    """A type of the protocol. Members that it does not know are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, from_attributes=True, extra="allow"
    )

    if not TYPE_CHECKING:  # otherwise type checkers accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Return a member by its name in the specification."""
            for member, field in type(self).model_fields.items():
                if name == field.alias:
                    return getattr(self, member)
            return super().__getattr__(name)


class _WithMeta(MCPModel):
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class Result(_WithMeta):
    """A result."""


class EmptyResult(Result):
    """A result without members."""


class PaginatedResult(Result):
    """A page of a list."""

    next_cursor: str | None = None


class BaseMetadata(MCPModel):
    """The name of something for programs, and its title for people."""

    name: str
    title: str | None = None


class Icon(MCPModel):
    """An icon."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: IconTheme | None = None


class Implementation(BaseMetadata):
    """The name and the version of a client or a server."""

    version: str
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class Annotations(MCPModel):
    """Hints about content for clients."""

    audience: list[Role] | None = None
    priority: float | None = Field(default=None, ge=0, le=1)
    last_modified: str | None = None


class ToolAnnotations(MCPModel):
    """Hints about a tool for clients."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


# Contents of resources, and content blocks


class ResourceContents(_WithMeta):
    """Contents of a resource."""

    uri: str
    mime_type: str | None = None


class TextResourceContents(ResourceContents):
    """The text of a resource."""

    text: str


class BlobResourceContents(ResourceContents):
    """The bytes of a resource in base64."""

    blob: str


class TextContent(_WithMeta):
    """A text."""

    type: Literal["text"] = "text"
    text: str
    annotations: Annotations | None = None


class ImageContent(_WithMeta):
    """An image in base64."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str
    annotations: Annotations | None = None


class AudioContent(_WithMeta):
    """A sound in base64."""

    type: Literal["audio"] = "audio"
    data: str
    mime_type: str
    annotations: Annotations | None = None


class EmbeddedResource(_WithMeta):
    """The contents of a resource in a result or a message."""

    type: Literal["resource"] = "resource"
    resource: TextResourceContents | BlobResourceContents
    annotations: Annotations | None = None


class _OfResource(_WithMeta):
    description: str | None = None
    mime_type: str | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None


class Resource(_OfResource, BaseMetadata):
    """A resource in a list."""

    uri: str
    size: int | None = None


class ResourceLink(Resource):
    """A link to a resource in a result or a message."""

    type: Literal["resource_link"] = "resource_link"


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(_WithMeta):
    """A call of a tool that a model asks for."""

    type: Literal["tool_use"] = "tool_use"
    name: str
    id: str
    input: dict[str, Any]


class ToolResultContent(_WithMeta):
    """The result of a call that a model asked for."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock] = []
    structured_content: Any = None
    is_error: bool | None = None


# Definitions in lists


class ResourceTemplate(_OfResource, BaseMetadata):
    """A template of resources in a list."""

    uri_template: str


class PromptArgument(BaseMetadata):
    """An argument of a prompt."""

    description: str | None = None
    required: bool | None = None


class Prompt(_WithMeta, BaseMetadata):
    """A prompt in a list."""

    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None


class ToolExecution(MCPModel):
    """How a tool may be called."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class Tool(_WithMeta, BaseMetadata):
    """A tool in a list."""

    description: str | None = None
    input_schema: dict[str, Any]
    execution: ToolExecution | None = None
    output_schema: dict[str, Any] | None = None
    icons: list[Icon] | None = None
    annotations: ToolAnnotations | None = None


class ListToolsResult(PaginatedResult):
    """A list of tools."""

    tools: list[Tool]


class ListPromptsResult(PaginatedResult):
    """A list of prompts."""

    prompts: list[Prompt]


class ListResourcesResult(PaginatedResult):
    """A list of resources."""

    resources: list[Resource]


class ListResourceTemplatesResult(PaginatedResult):
    """A list of templates of resources."""

    resource_templates: list[ResourceTemplate]


# Results


class CallToolResult(Result):
    """The result of a tool."""

    content: list[ContentBlock]
    structured_content: Any = None
    is_error: bool = False


class ReadResourceResult(Result):
    """The contents of a resource."""

    contents: list[TextResourceContents | BlobResourceContents]


class PromptMessage(MCPModel):
    """A message of a prompt."""

    role: Role
    content: ContentBlock


class GetPromptResult(Result):
    """The messages of a prompt."""

    description: str | None = None
    messages: list[PromptMessage]


# Completion


class PromptReference(BaseMetadata):
    """The prompt whose argument is completed."""

    type: Literal["ref/prompt"] = "ref/prompt"


class ResourceTemplateReference(MCPModel):
    """The template whose variable is completed."""

    type: Literal["ref/resource"] = "ref/resource"
    uri: str


class CompletionArgument(MCPModel):
    """The argument that is completed."""

    name: str
    value: str


class CompletionContext(MCPModel):
    """The arguments that have values already."""

    arguments: dict[str, str] | None = None


class Completion(MCPModel):
    """Proposed values of an argument."""

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result):
    """The result of a completion."""

    completion: Completion


# Requests to the client


SamplingContent: TypeAlias = TextContent | ImageContent | AudioContent
SamplingMessageContentBlock: TypeAlias = SamplingContent | ToolUseContent | ToolResultContent


class SamplingMessage(_WithMeta):
    """A message to or from a model."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]

    @property
    def content_as_list(self) -> list[SamplingMessageContentBlock]:
        """The content as a list of blocks."""
        return self.content if isinstance(self.content, list) else [self.content]


class ModelHint(MCPModel):
    """A part of the name of a model."""

    name: str | None = None


class ModelPreferences(MCPModel):
    """What counts for the choice of a model."""

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(MCPModel):
    """Whether a model has to use tools."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageResult(Result):
    """The answer of a model."""

    role: Role
    content: SamplingContent
    model: str
    stop_reason: StopReason | None = None


class CreateMessageResultWithTools(Result):
    """The answer of a model that may use tools."""

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    model: str
    stop_reason: StopReason | None = None


class ElicitResult(Result):
    """The answer of a user."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class ElicitRequestURLParams(_WithMeta):
    """A page that the user is asked to open."""

    mode: Literal["url"] = "url"
    message: str
    url: str
    elicitation_id: str | None = None


class Root(_WithMeta):
    """A folder or a file of the client."""

    uri: str
    name: str | None = None


class ListRootsResult(Result):
    """The roots of the client."""

    roots: list[Root]


# Requests and notifications that servers make


class ElicitRequestFormParams(_WithMeta):
    """A form for the user."""

    mode: Literal["form"] = "form"
    message: str
    requested_schema: dict[str, Any]


ElicitRequestParams: TypeAlias = ElicitRequestURLParams | ElicitRequestFormParams


class ElicitRequest(MCPModel):
    """A question to the user."""

    method: Literal["elicitation/create"] = "elicitation/create"
    params: ElicitRequestParams


class CreateMessageRequestParams(_WithMeta):
    """Messages for the client's model, and how it should answer."""

    messages: list[SamplingMessage]
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: IncludeContext | None = None
    temperature: float | None = None
    max_tokens: int
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None


class CreateMessageRequest(MCPModel):
    """A question to the client's model."""

    method: Literal["sampling/createMessage"] = "sampling/createMessage"
    params: CreateMessageRequestParams


class ListRootsRequest(MCPModel):
    """A question for the client's roots."""

    method: Literal["roots/list"] = "roots/list"
    params: _WithMeta | None = None


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest
InputRequests: TypeAlias = dict[str, InputRequest]
InputResponse: TypeAlias = CreateMessageResultWithTools | CreateMessageResult | ListRootsResult | ElicitResult
InputResponses: TypeAlias = dict[str, InputResponse]


class InputRequiredResult(Result):
    """Questions to the client, whose answers are in the next call of the function."""

    result_type: Literal["input_required"] = "input_required"
    input_requests: InputRequests | None = None
    request_state: str | None = None


class RequestParams(_WithMeta):
    """The parameters of a request."""


class CallToolRequestParams(RequestParams):
    """The parameters of a call."""

    name: str
    arguments: dict[str, Any] | None = None
    task: dict[str, Any] | None = None
    input_responses: InputResponses | None = None
    request_state: str | None = None


class SubscriptionFilter(MCPModel):
    """The notifications that a client subscribes to."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class SubscriptionsListenRequestParams(RequestParams):
    """The parameters of a subscription."""

    notifications: SubscriptionFilter


# What clients can do


class RootsCapability(MCPModel):
    """The client has roots."""

    list_changed: bool | None = None


class SamplingContextCapability(MCPModel):
    """The client's model gets context of servers."""


class SamplingToolsCapability(MCPModel):
    """The client's model uses tools."""


class SamplingCapability(MCPModel):
    """The client has a model that answers servers."""

    context: SamplingContextCapability | None = None
    tools: SamplingToolsCapability | None = None


class FormElicitationCapability(MCPModel):
    """The client shows forms."""


class UrlElicitationCapability(MCPModel):
    """The client opens pages."""


class ElicitationCapability(MCPModel):
    """The client asks its user."""

    form: FormElicitationCapability | None = None
    url: UrlElicitationCapability | None = None


class ClientCapabilities(MCPModel):
    """What a client can do for servers."""

    experimental: dict[str, dict[str, Any]] | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    roots: RootsCapability | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    tasks: dict[str, Any] | None = None


class NotificationParams(_WithMeta):
    """The parameters of a notification."""


class ToolListChangedNotification(MCPModel):
    """The list of tools has changed."""

    method: Literal["notifications/tools/list_changed"] = "notifications/tools/list_changed"
    params: NotificationParams | None = None


class PromptListChangedNotification(MCPModel):
    """The list of prompts has changed."""

    method: Literal["notifications/prompts/list_changed"] = "notifications/prompts/list_changed"
    params: NotificationParams | None = None


class ResourceListChangedNotification(MCPModel):
    """The list of resources has changed."""

    method: Literal["notifications/resources/list_changed"] = "notifications/resources/list_changed"
    params: NotificationParams | None = None


class ResourceUpdatedNotificationParams(NotificationParams):
    """The resource that has changed."""

    uri: str


class ResourceUpdatedNotification(MCPModel):
    """A resource has changed."""

    method: Literal["notifications/resources/updated"] = "notifications/resources/updated"
    params: ResourceUpdatedNotificationParams


class ErrorData(MCPModel):
    """A JSON-RPC error."""

    code: int
    message: str
    data: Any = None


for _type in [value for value in globals().values() if isinstance(value, type) and value.__module__ == __name__]:
    _type.__module__ = "funcmcp.compat.mcp.types"  # only now: pydantic looks names of annotations up in the module
