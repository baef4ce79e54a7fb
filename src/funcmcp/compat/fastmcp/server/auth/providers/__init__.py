"""Names of `fastmcp.server.auth.providers` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.server.auth.providers import auth0 as auth0
    from funcmcp.compat.fastmcp.server.auth.providers import aws as aws
    from funcmcp.compat.fastmcp.server.auth.providers import azure as azure
    from funcmcp.compat.fastmcp.server.auth.providers import clerk as clerk
    from funcmcp.compat.fastmcp.server.auth.providers import debug as debug
    from funcmcp.compat.fastmcp.server.auth.providers import descope as descope
    from funcmcp.compat.fastmcp.server.auth.providers import discord as discord
    from funcmcp.compat.fastmcp.server.auth.providers import github as github
    from funcmcp.compat.fastmcp.server.auth.providers import google as google
    from funcmcp.compat.fastmcp.server.auth.providers import huggingface as huggingface
    from funcmcp.compat.fastmcp.server.auth.providers import in_memory as in_memory
    from funcmcp.compat.fastmcp.server.auth.providers import introspection as introspection
    from funcmcp.compat.fastmcp.server.auth.providers import jwt as jwt
    from funcmcp.compat.fastmcp.server.auth.providers import keycloak as keycloak
    from funcmcp.compat.fastmcp.server.auth.providers import oci as oci
    from funcmcp.compat.fastmcp.server.auth.providers import propelauth as propelauth
    from funcmcp.compat.fastmcp.server.auth.providers import scalekit as scalekit
    from funcmcp.compat.fastmcp.server.auth.providers import supabase as supabase
    from funcmcp.compat.fastmcp.server.auth.providers import workos as workos
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
