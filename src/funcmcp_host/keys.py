"""The keys of a served function app, as the Functions host knows them.

A key comes in the header ``x-functions-key`` or in the query parameter ``code``, in any case. If the parameter is
repeated, the first one counts, and the function sees none that is a key. The MCP endpoint takes the system key
``mcp_extension`` or the master key, the endpoint of Durable Functions ``durabletask_extension`` or the master key, and
HTTP triggers a function key or the master key, by their level.

Where other machines reach the app, and wherever there are keys, what no key opens is closed. Only on a loopback address
an app without any key is open, as with Core Tools.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_plus

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

VARIABLE = "FUNCMCP_HOST_KEYS"
MCP_KEY, DEFAULT_KEY, MASTER_KEY = "mcp_extension", "default", "_master"
DURABLE_KEY = "durabletask_extension"

MCP_NAMES = (MCP_KEY, MASTER_KEY)
"""Keys that open the MCP endpoint."""

DURABLE_NAMES = (DURABLE_KEY, MASTER_KEY)
"""Keys that open the endpoint to manage orchestrations."""

NAMES_BY_LEVEL: Mapping[str, Sequence[str]] = {
    "anonymous": (),
    "function": (DEFAULT_KEY, MASTER_KEY),
    "admin": (MASTER_KEY,),
}
"""Keys that open an HTTP trigger; any of them for a level without an entry would open nothing."""

_MIN_LENGTH = 16
_HEADER, _PARAMETER = b"x-functions-key", "code"


class KeysError(ValueError):
    """The keys in the environment can't be used; the text does not repeat them."""


class Keys:
    """Keys by name.

    Args:
        keys: The keys.
        required: Whether requests need a key even if there is none at all.
    """

    def __init__(self, keys: Mapping[str, str], *, required: bool = False) -> None:
        self._keys = {name: key.encode() for name, key in keys.items()}
        self.are_required = required or bool(keys)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], *, required: bool = False) -> Keys:
        """Return the keys in ``FUNCMCP_HOST_KEYS``: ``mcp_extension=...,default=...,_master=...``.

        Args:
            environment: The environment variables.
            required: See `Keys`.

        Raises:
            KeysError: A key has no name, an unknown one, or is shorter than 16 characters.
        """
        keys: dict[str, str] = {}
        for pair in environment.get(VARIABLE, "").split(","):
            name, separator, key = pair.strip().partition("=")
            if not pair.strip():
                continue
            if not separator or name not in {MCP_KEY, DEFAULT_KEY, MASTER_KEY, DURABLE_KEY}:
                raise KeysError(f"{VARIABLE} must be a list such as {MCP_KEY}=...,{DEFAULT_KEY}=...,{MASTER_KEY}=...")
            if len(key) < _MIN_LENGTH:
                raise KeysError(f"{VARIABLE}: the key {name} must have at least {_MIN_LENGTH} characters.")
            keys[name] = key
        return cls(keys, required=required)

    def __bool__(self) -> bool:
        """Return whether there are keys."""
        return bool(self._keys)

    def text_of(self, name: str) -> str:
        """Return a key; an empty text if it is not set."""
        return self._keys.get(name, b"").decode()

    def has_any(self, names: Collection[str]) -> bool:
        """Return whether there is a key with one of these names."""
        return not self._keys.keys().isdisjoint(names)

    def refusal(self, request: HttpRequest, names: Collection[str]) -> HttpResponse | None:
        """Return the refusal of a request that has none of these keys, or None if it may pass.

        With no names, or where keys are not required, every request may pass.
        """
        if not names or not self.are_required:
            return None
        offered = request.fields.get(_HEADER)
        if offered is None:
            offered = _first_code(request.query_string).encode()
        if _is_one_of(offered, [self._keys[name] for name in names if name in self._keys]):
            return None
        text = f"Send the key {' or '.join(names)} of this function app in the header x-functions-key."
        return refuse(401, INVALID_REQUEST, text)

    def without_key(self, query_string: str) -> str:
        """Return a query without the parameter ``code``, if that is a key: other values are the app's own."""
        return "&".join(part for part in query_string.split("&") if not self._is_key(part))

    def _is_key(self, parameter: str) -> bool:
        name, _, text = parameter.partition("=")
        if unquote_plus(name).lower() != _PARAMETER:
            return False
        return _is_one_of(unquote_plus(text).encode(), self._keys.values())


def _first_code(query_string: str) -> str:
    """Return the first parameter ``code`` of a query; empty if there is none."""
    parameters = parse_qsl(query_string, keep_blank_values=True)
    return next((text for name, text in parameters if name.lower() == _PARAMETER), "")


def _is_one_of(text: bytes, keys: Iterable[bytes]) -> bool:
    matches = [hmac.compare_digest(text, key) for key in keys]  # all of them: equal time for each
    return any(matches)
