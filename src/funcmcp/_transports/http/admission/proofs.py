"""Proofs of possession (DPoP) of requests over HTTP: the URL that a proof is for, and the refusals.

How it works: the URL comes from the configuration, as that of the sign-in does, and never from Host or from headers of
proxies. A request to the endpoint has the URL of the resource. Any other path is below the same public URL: of a server
at ``https://example.com/api/mcp`` with the endpoint ``/mcp``, the route ``/report`` is at
``https://example.com/api/report``. Its percent-encoding is that of the request: ``%2F`` is not a slash.

Source: RFC 9449 section 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.tokens.proofs import ProofError, Proofs, is_key_of
from funcmcp._transports.http.admission.caller import caller_of_principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._auth.principal import Principal
    from funcmcp._transports.http.messages import HttpRequest

_HEADER = b"dpop"


class RequestProofs:
    """Checks the proofs of requests to one server.

    Args:
        proofs: Checks proofs.
        resource: The public URL of the endpoint.
        path: Returns the path of the endpoint, below where the server is mounted.
    """

    def __init__(self, proofs: Proofs, resource: str, path: Callable[[], str]) -> None:
        self._proofs = proofs
        self._resource = urlsplit(resource)
        self._path = path

    async def check(
        self, request: HttpRequest, token: str, principal: Principal, *, is_repeated: bool = False
    ) -> Challenge | None:
        """Return why a request has no valid proof of the key of its token.

        Args:
            request: The request.
            token: The token.
            principal: Its principal, whose claim ``cnf`` has the thumbprint of the key.
            is_repeated: Whether the same request was accepted before, so that its proof is not new.
        """
        lines = [value for name, value in request.pairs if name == _HEADER]
        if len(lines) != 1:
            return Challenge("invalid_dpop_proof", "The request needs exactly one header DPoP, with a proof.", "DPoP")
        try:
            proof = self._proofs.read(
                lines[0].decode("latin-1").strip(" \t"),
                request.method,
                self._url_of(request),
                token,
                is_repeated=is_repeated,
            )
            if not is_key_of(principal.claims["cnf"]["jkt"], proof):
                return Challenge("invalid_dpop_proof", "The token is bound to another key than the proof.", "DPoP")
            if not is_repeated:
                await self._proofs.use(proof, caller_of_principal(principal.key))
        except ProofError as error:
            return Challenge(error.error, str(error), "DPoP", error.nonce)
        return None

    def _url_of(self, request: HttpRequest) -> str:
        resource, endpoint = self._resource, self._path()
        path = resource.path
        if request.path != endpoint:
            below = path.removesuffix(endpoint) if path.endswith(endpoint) else ""
            path = below + request.raw_path
        return f"{resource.scheme}://{resource.netloc}{path}"
