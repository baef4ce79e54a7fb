"""Names of `fastmcp.server.sessions` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sessions import CurrentSession as CurrentSession
    from funcmcp._compat.sessions import InvalidSession as InvalidSession
    from funcmcp._compat.sessions import OptionalCurrentSession as OptionalCurrentSession
    from funcmcp._compat.sessions import SESSION_ID_DESCRIPTION as SESSION_ID_DESCRIPTION
    from funcmcp._compat.sessions import SessionAuthError as SessionAuthError
    from funcmcp._compat.sessions import SessionId as SessionId
    from funcmcp._compat.sessions import create_session as create_session
    from funcmcp._compat.sessions import current_principal as current_principal
    from funcmcp._compat.sessions import end_session as end_session
    from funcmcp._compat.sessions import session_id_parameter_names as session_id_parameter_names
    from funcmcp._compat.sessions import session_storage_key as session_storage_key
    from funcmcp.compat import Session as Session
    from funcmcp.compat import SessionProvider as SessionProvider
    from funcmcp.compat import UserSession as UserSession
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sessions": [
            "CurrentSession",
            "InvalidSession",
            "OptionalCurrentSession",
            "SESSION_ID_DESCRIPTION",
            "SessionAuthError",
            "SessionId",
            "create_session",
            "current_principal",
            "end_session",
            "session_id_parameter_names",
            "session_storage_key",
        ],
        "funcmcp.compat": [
            "Session",
            "SessionProvider",
            "UserSession",
        ],
    })
