"""FastMCP's OAuth proxy in front of an OpenID provider, for the comparison of attacks.

Arguments: the port, the provider's issuer, the client's id and its secret. It runs in the virtual environment of
scripts/setup-differential.sh, without funcmcp.
"""

from __future__ import annotations

import logging
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.oidc_proxy import OIDCProxy


def main(port: str, issuer: str, client_id: str, secret: str) -> None:
    logging.disable(logging.INFO)
    auth = OIDCProxy(
        config_url=f"{issuer}/.well-known/openid-configuration",
        client_id=client_id,
        client_secret=secret,
        base_url=f"http://127.0.0.1:{port}",
        required_scopes=["openid", "offline_access"],
        verify_id_token=True,
        extra_authorize_params={"prompt": "consent"},
        forward_resource=False,  # by default it sends `resource` to the provider, which does not know it
    )
    mcp = FastMCP("Orders", auth=auth)

    def who() -> str:
        return "somebody"

    mcp.tool(who)
    mcp.run("http", host="127.0.0.1", port=int(port), show_banner=False, log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:5])
