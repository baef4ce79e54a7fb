"""Names of `mcp.types` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import Annotations as Annotations
    from funcmcp._compat.sdk_types import AudioContent as AudioContent
    from funcmcp._compat.sdk_types import BaseMetadata as BaseMetadata
    from funcmcp._compat.sdk_types import BlobResourceContents as BlobResourceContents
    from funcmcp._compat.sdk_types import CONNECTION_CLOSED as CONNECTION_CLOSED
    from funcmcp._compat.sdk_types import CallToolRequestParams as CallToolRequestParams
    from funcmcp._compat.sdk_types import CallToolResult as CallToolResult
    from funcmcp._compat.sdk_types import ClientCapabilities as ClientCapabilities
    from funcmcp._compat.sdk_types import CompleteResult as CompleteResult
    from funcmcp._compat.sdk_types import Completion as Completion
    from funcmcp._compat.sdk_types import CompletionArgument as CompletionArgument
    from funcmcp._compat.sdk_types import CompletionContext as CompletionContext
    from funcmcp._compat.sdk_types import ContentBlock as ContentBlock
    from funcmcp._compat.sdk_types import CreateMessageRequest as CreateMessageRequest
    from funcmcp._compat.sdk_types import CreateMessageRequestParams as CreateMessageRequestParams
    from funcmcp._compat.sdk_types import CreateMessageResult as CreateMessageResult
    from funcmcp._compat.sdk_types import CreateMessageResultWithTools as CreateMessageResultWithTools
    from funcmcp._compat.sdk_types import ElicitRequest as ElicitRequest
    from funcmcp._compat.sdk_types import ElicitRequestFormParams as ElicitRequestFormParams
    from funcmcp._compat.sdk_types import ElicitRequestParams as ElicitRequestParams
    from funcmcp._compat.sdk_types import ElicitRequestURLParams as ElicitRequestURLParams
    from funcmcp._compat.sdk_types import ElicitResult as ElicitResult
    from funcmcp._compat.sdk_types import ElicitationCapability as ElicitationCapability
    from funcmcp._compat.sdk_types import EmbeddedResource as EmbeddedResource
    from funcmcp._compat.sdk_types import EmptyResult as EmptyResult
    from funcmcp._compat.sdk_types import ErrorData as ErrorData
    from funcmcp._compat.sdk_types import FormElicitationCapability as FormElicitationCapability
    from funcmcp._compat.sdk_types import GetPromptResult as GetPromptResult
    from funcmcp._compat.sdk_types import HEADER_MISMATCH as HEADER_MISMATCH
    from funcmcp._compat.sdk_types import INTERNAL_ERROR as INTERNAL_ERROR
    from funcmcp._compat.sdk_types import INVALID_PARAMS as INVALID_PARAMS
    from funcmcp._compat.sdk_types import INVALID_REQUEST as INVALID_REQUEST
    from funcmcp._compat.sdk_types import Icon as Icon
    from funcmcp._compat.sdk_types import IconTheme as IconTheme
    from funcmcp._compat.sdk_types import ImageContent as ImageContent
    from funcmcp._compat.sdk_types import Implementation as Implementation
    from funcmcp._compat.sdk_types import IncludeContext as IncludeContext
    from funcmcp._compat.sdk_types import InputRequest as InputRequest
    from funcmcp._compat.sdk_types import InputRequests as InputRequests
    from funcmcp._compat.sdk_types import InputRequiredResult as InputRequiredResult
    from funcmcp._compat.sdk_types import InputResponse as InputResponse
    from funcmcp._compat.sdk_types import InputResponses as InputResponses
    from funcmcp._compat.sdk_types import JSONRPC_VERSION as JSONRPC_VERSION
    from funcmcp._compat.sdk_types import ListPromptsResult as ListPromptsResult
    from funcmcp._compat.sdk_types import ListResourceTemplatesResult as ListResourceTemplatesResult
    from funcmcp._compat.sdk_types import ListResourcesResult as ListResourcesResult
    from funcmcp._compat.sdk_types import ListRootsRequest as ListRootsRequest
    from funcmcp._compat.sdk_types import ListRootsResult as ListRootsResult
    from funcmcp._compat.sdk_types import ListToolsResult as ListToolsResult
    from funcmcp._compat.sdk_types import LoggingLevel as LoggingLevel
    from funcmcp._compat.sdk_types import METHOD_NOT_FOUND as METHOD_NOT_FOUND
    from funcmcp._compat.sdk_types import MISSING_REQUIRED_CLIENT_CAPABILITY as MISSING_REQUIRED_CLIENT_CAPABILITY
    from funcmcp._compat.sdk_types import ModelHint as ModelHint
    from funcmcp._compat.sdk_types import ModelPreferences as ModelPreferences
    from funcmcp._compat.sdk_types import NotificationParams as NotificationParams
    from funcmcp._compat.sdk_types import PARSE_ERROR as PARSE_ERROR
    from funcmcp._compat.sdk_types import PaginatedResult as PaginatedResult
    from funcmcp._compat.sdk_types import ProgressToken as ProgressToken
    from funcmcp._compat.sdk_types import Prompt as Prompt
    from funcmcp._compat.sdk_types import PromptArgument as PromptArgument
    from funcmcp._compat.sdk_types import PromptListChangedNotification as PromptListChangedNotification
    from funcmcp._compat.sdk_types import PromptMessage as PromptMessage
    from funcmcp._compat.sdk_types import PromptReference as PromptReference
    from funcmcp._compat.sdk_types import REQUEST_TIMEOUT as REQUEST_TIMEOUT
    from funcmcp._compat.sdk_types import ReadResourceResult as ReadResourceResult
    from funcmcp._compat.sdk_types import RequestId as RequestId
    from funcmcp._compat.sdk_types import RequestParams as RequestParams
    from funcmcp._compat.sdk_types import Resource as Resource
    from funcmcp._compat.sdk_types import ResourceContents as ResourceContents
    from funcmcp._compat.sdk_types import ResourceLink as ResourceLink
    from funcmcp._compat.sdk_types import ResourceListChangedNotification as ResourceListChangedNotification
    from funcmcp._compat.sdk_types import ResourceTemplate as ResourceTemplate
    from funcmcp._compat.sdk_types import ResourceTemplateReference as ResourceTemplateReference
    from funcmcp._compat.sdk_types import ResourceUpdatedNotification as ResourceUpdatedNotification
    from funcmcp._compat.sdk_types import ResourceUpdatedNotificationParams as ResourceUpdatedNotificationParams
    from funcmcp._compat.sdk_types import Result as Result
    from funcmcp._compat.sdk_types import ResultType as ResultType
    from funcmcp._compat.sdk_types import Role as Role
    from funcmcp._compat.sdk_types import Root as Root
    from funcmcp._compat.sdk_types import RootsCapability as RootsCapability
    from funcmcp._compat.sdk_types import SamplingCapability as SamplingCapability
    from funcmcp._compat.sdk_types import SamplingContent as SamplingContent
    from funcmcp._compat.sdk_types import SamplingContextCapability as SamplingContextCapability
    from funcmcp._compat.sdk_types import SamplingMessage as SamplingMessage
    from funcmcp._compat.sdk_types import SamplingMessageContentBlock as SamplingMessageContentBlock
    from funcmcp._compat.sdk_types import SamplingToolsCapability as SamplingToolsCapability
    from funcmcp._compat.sdk_types import StopReason as StopReason
    from funcmcp._compat.sdk_types import SubscriptionFilter as SubscriptionFilter
    from funcmcp._compat.sdk_types import SubscriptionsListenRequestParams as SubscriptionsListenRequestParams
    from funcmcp._compat.sdk_types import TextContent as TextContent
    from funcmcp._compat.sdk_types import TextResourceContents as TextResourceContents
    from funcmcp._compat.sdk_types import Tool as Tool
    from funcmcp._compat.sdk_types import ToolAnnotations as ToolAnnotations
    from funcmcp._compat.sdk_types import ToolChoice as ToolChoice
    from funcmcp._compat.sdk_types import ToolExecution as ToolExecution
    from funcmcp._compat.sdk_types import ToolListChangedNotification as ToolListChangedNotification
    from funcmcp._compat.sdk_types import ToolResultContent as ToolResultContent
    from funcmcp._compat.sdk_types import ToolUseContent as ToolUseContent
    from funcmcp._compat.sdk_types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED_PROTOCOL_VERSION
    from funcmcp._compat.sdk_types import URL_ELICITATION_REQUIRED as URL_ELICITATION_REQUIRED
    from funcmcp._compat.sdk_types import UrlElicitationCapability as UrlElicitationCapability
    from funcmcp.compat.mcp.types import jsonrpc as jsonrpc
    from funcmcp.compat.mcp.types import version as version
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "Annotations",
            "AudioContent",
            "BaseMetadata",
            "BlobResourceContents",
            "CONNECTION_CLOSED",
            "CallToolRequestParams",
            "CallToolResult",
            "ClientCapabilities",
            "CompleteResult",
            "Completion",
            "CompletionArgument",
            "CompletionContext",
            "ContentBlock",
            "CreateMessageRequest",
            "CreateMessageRequestParams",
            "CreateMessageResult",
            "CreateMessageResultWithTools",
            "ElicitRequest",
            "ElicitRequestFormParams",
            "ElicitRequestParams",
            "ElicitRequestURLParams",
            "ElicitResult",
            "ElicitationCapability",
            "EmbeddedResource",
            "EmptyResult",
            "ErrorData",
            "FormElicitationCapability",
            "GetPromptResult",
            "HEADER_MISMATCH",
            "INTERNAL_ERROR",
            "INVALID_PARAMS",
            "INVALID_REQUEST",
            "Icon",
            "IconTheme",
            "ImageContent",
            "Implementation",
            "IncludeContext",
            "InputRequest",
            "InputRequests",
            "InputRequiredResult",
            "InputResponse",
            "InputResponses",
            "JSONRPC_VERSION",
            "ListPromptsResult",
            "ListResourceTemplatesResult",
            "ListResourcesResult",
            "ListRootsRequest",
            "ListRootsResult",
            "ListToolsResult",
            "LoggingLevel",
            "METHOD_NOT_FOUND",
            "MISSING_REQUIRED_CLIENT_CAPABILITY",
            "ModelHint",
            "ModelPreferences",
            "NotificationParams",
            "PARSE_ERROR",
            "PaginatedResult",
            "ProgressToken",
            "Prompt",
            "PromptArgument",
            "PromptListChangedNotification",
            "PromptMessage",
            "PromptReference",
            "REQUEST_TIMEOUT",
            "ReadResourceResult",
            "RequestId",
            "RequestParams",
            "Resource",
            "ResourceContents",
            "ResourceLink",
            "ResourceListChangedNotification",
            "ResourceTemplate",
            "ResourceTemplateReference",
            "ResourceUpdatedNotification",
            "ResourceUpdatedNotificationParams",
            "Result",
            "ResultType",
            "Role",
            "Root",
            "RootsCapability",
            "SamplingCapability",
            "SamplingContent",
            "SamplingContextCapability",
            "SamplingMessage",
            "SamplingMessageContentBlock",
            "SamplingToolsCapability",
            "StopReason",
            "SubscriptionFilter",
            "SubscriptionsListenRequestParams",
            "TextContent",
            "TextResourceContents",
            "Tool",
            "ToolAnnotations",
            "ToolChoice",
            "ToolExecution",
            "ToolListChangedNotification",
            "ToolResultContent",
            "ToolUseContent",
            "UNSUPPORTED_PROTOCOL_VERSION",
            "URL_ELICITATION_REQUIRED",
            "UrlElicitationCapability",
        ],
    })
