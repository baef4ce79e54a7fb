"""Formats of texts that Python has no type for: ``Annotated[str, Format("email")]``.

Source: JSON Schema 2020-12 validation, section 7 (`phone` is an addition of ours, after .NET's). Each check takes time
proportional to the length of the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

Name = Literal["date", "date-time", "time", "email", "uri", "uuid", "hostname", "phone"]

_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_PHONE = re.compile(r"\+?[0-9][0-9 ().-]{2,30}")
_LOCAL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ZONE = r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"


def _is_hostname(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))  # noqa: PLR2004 - RFC 1035


def _is_email(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    plain = not local.startswith(".") and not local.endswith(".") and ".." not in local
    return _LOCAL.fullmatch(local) is not None and plain and "." in domain and _is_hostname(domain)


def _is_uri(text: str) -> bool:
    scheme, colon, rest = text.partition(":")
    if not colon or not rest or not _SCHEME.fullmatch(scheme) or any(c <= " " or c in '<>"{}|\\^`' for c in text):
        return False
    try:
        urlsplit(text).port  # noqa: B018 - the property checks the authority
    except ValueError:
        return False
    return True


def _parses(kind: str) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        from datetime import date, datetime, time  # noqa: PLC0415 - rarely needed

        read = {"date": date.fromisoformat, "date-time": datetime.fromisoformat, "time": time.fromisoformat}[kind]
        shape = {"date": r"\d{4}-\d\d-\d\d", "time": rf"\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}?"}
        shape["date-time"] = rf"\d{{4}}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"
        if not re.fullmatch(shape[kind], text, re.ASCII):
            return False
        try:
            read(text.upper())
        except ValueError:
            return False
        return True

    return check


_CHECKS: dict[str, tuple[Callable[[str], bool], str]] = {
    "date": (_parses("date"), "a date such as 2026-01-31"),
    "date-time": (_parses("date-time"), "a date and time such as 2026-01-31T12:00:00Z"),
    "time": (_parses("time"), "a time such as 12:00:00"),
    "email": (_is_email, "an e-mail address"),
    "uri": (_is_uri, "a URI such as https://example.com/"),
    "uuid": (lambda text: _UUID.fullmatch(text) is not None, "a UUID"),
    "hostname": (_is_hostname, "a host name"),
    "phone": (lambda text: _PHONE.fullmatch(text) is not None, "a telephone number"),
}


class Format:
    """Annotates a text with a format that is declared in the schema and checked: ``Annotated[str, Format("email")]``.

    Args:
        name: one of date, date-time, time, email, uri, uuid, hostname, phone.
    """

    __slots__ = ("name",)

    def __init__(self, name: Name) -> None:
        if name not in _CHECKS:
            raise RegistrationError(f"There is no format {name!r}; take one of {', '.join(_CHECKS)}.")
        self.name = name

    def check(self, text: str) -> str:
        """Return the text; raise ValueError if it does not have the format."""
        matches, wanted = _CHECKS[self.name]
        if not matches(text):
            raise ValueError(f"must be {wanted}")
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Add the check to pydantic's schema of the text."""
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic is loaded when it is needed

        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Add the format to the JSON schema."""
        return {**handler(schema), "format": self.name}


class Header:
    """Annotates an argument that 2026-07-28 clients repeat in a header: ``Annotated[str, Header("Region")]``.

    The header is `Mcp-Param-Region`, for gateways that route by it. The argument must be a text, an integer or a boolean.

    Args:
        name: the name after `Mcp-Param-`, a header token.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """Add the name to the JSON schema."""
        return {**handler(schema), "x-mcp-header": self.name}
