"""Names of `mcp.types.jsonrpc` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import CONNECTION_CLOSED as CONNECTION_CLOSED
    from funcmcp._compat.sdk_types import ErrorData as ErrorData
    from funcmcp._compat.sdk_types import HEADER_MISMATCH as HEADER_MISMATCH
    from funcmcp._compat.sdk_types import INTERNAL_ERROR as INTERNAL_ERROR
    from funcmcp._compat.sdk_types import INVALID_PARAMS as INVALID_PARAMS
    from funcmcp._compat.sdk_types import INVALID_REQUEST as INVALID_REQUEST
    from funcmcp._compat.sdk_types import JSONRPC_VERSION as JSONRPC_VERSION
    from funcmcp._compat.sdk_types import METHOD_NOT_FOUND as METHOD_NOT_FOUND
    from funcmcp._compat.sdk_types import MISSING_REQUIRED_CLIENT_CAPABILITY as MISSING_REQUIRED_CLIENT_CAPABILITY
    from funcmcp._compat.sdk_types import PARSE_ERROR as PARSE_ERROR
    from funcmcp._compat.sdk_types import REQUEST_TIMEOUT as REQUEST_TIMEOUT
    from funcmcp._compat.sdk_types import RequestId as RequestId
    from funcmcp._compat.sdk_types import UNSUPPORTED_PROTOCOL_VERSION as UNSUPPORTED_PROTOCOL_VERSION
    from funcmcp._compat.sdk_types import URL_ELICITATION_REQUIRED as URL_ELICITATION_REQUIRED
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "CONNECTION_CLOSED",
            "ErrorData",
            "HEADER_MISMATCH",
            "INTERNAL_ERROR",
            "INVALID_PARAMS",
            "INVALID_REQUEST",
            "JSONRPC_VERSION",
            "METHOD_NOT_FOUND",
            "MISSING_REQUIRED_CLIENT_CAPABILITY",
            "PARSE_ERROR",
            "REQUEST_TIMEOUT",
            "RequestId",
            "UNSUPPORTED_PROTOCOL_VERSION",
            "URL_ELICITATION_REQUIRED",
        ],
    })
