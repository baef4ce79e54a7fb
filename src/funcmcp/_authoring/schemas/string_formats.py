"""`Format`: string formats, which the schema names and which arguments are checked against.

Every check takes time in proportion to the text's length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

_MAX_HOSTNAME_LENGTH = 253
_MAX_LOCAL_PART_LENGTH = 64
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LOCAL_PART = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PHONE = re.compile(r"\+?[0-9 ()./-]+")
_PHONE_DIGITS = range(3, 16)
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WRITTEN_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?"


def _is_email(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    if local.startswith(".") or local.endswith(".") or ".." in local or len(local) > _MAX_LOCAL_PART_LENGTH:
        return False
    return bool(_LOCAL_PART.fullmatch(local)) and _is_hostname(domain)


def _is_hostname(text: str) -> bool:
    return len(text) <= _MAX_HOSTNAME_LENGTH and all(_LABEL.fullmatch(label) for label in text.split("."))


def _is_phone(text: str) -> bool:
    return bool(_PHONE.fullmatch(text)) and sum(map(str.isdigit, text)) in _PHONE_DIGITS


def _is_date(text: str) -> bool:
    from datetime import date  # noqa: PLC0415 - few servers need it

    try:
        return bool(_DATE.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    from datetime import time  # noqa: PLC0415 - few servers need it

    try:
        return bool(_TIME.fullmatch(text)) and time.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    return text[10:11] in {"T", "t", " "} and _is_date(text[:10]) and _is_time(text[11:])


def _is_ip(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        from ipaddress import ip_address  # noqa: PLC0415 - few servers need it

        try:
            return ip_address(text).version == version
        except ValueError:
            return False

    return check


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Return a function that returns whether a pattern matches a whole text."""
    return lambda text: pattern.fullmatch(text) is not None


FORMATS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "date": ("a date such as 2026-07-28", _is_date),
    "date-time": ("a date and time such as 2026-07-28T12:00:00Z", _is_date_time),
    "email": ("an email address", _is_email),
    "hostname": ("a host name", _is_hostname),
    "ipv4": ("an IPv4 address", _is_ip(4)),
    "ipv6": ("an IPv6 address", _is_ip(6)),
    "phone": ("a phone number", _is_phone),
    "time": ("a time such as 12:00:00Z", _is_time),
    "uri": ("a URI", _matches(_URI)),
    "uuid": ("a UUID", _matches(_UUID)),
}
"""A phrase for each format in errors, and its check."""

WRITTEN_FORMATS = {
    "written-bytes": r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "written-bytes-base64url": r"^[A-Za-z0-9_-]*={0,2}$",
    "written-bytes-hex": r"^(?:[0-9a-f]{2})*$",
    "written-datetime": rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_WRITTEN_TIME}$",
    "written-time": f"^{_WRITTEN_TIME}$",
    "written-timedelta": r"^-?P(?:[0-9]+Y)?(?:[0-9]+D)?(?:T(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?$",
}
"""The patterns of texts that pydantic writes and for which JSON Schema has no format. Clients see no such format."""

_GUARANTEED = frozenset({"date", "ipv4", "uuid"})
"""Formats whose checks accept nothing that a client rejects."""

CHECKED = "checked-"
RESULT_FORMATS = {f"{CHECKED}{name}": check for name, (_, check) in FORMATS.items() if name not in _GUARANTEED}
"""The checks of texts in results whose formats clients check in other ways. Clients see no such format.

For example, clients require an offset of a time, and a dot in the domain of an email address.
"""


@public("funcmcp")
class Format:
    """A string in a format: ``Annotated[str, Format("email")]``.

    The schema gets ``"format": "email"``, and arguments and results are checked. Formats are those of JSON Schema
    (date, date-time, email, hostname, ipv4, ipv6, time, uri, uuid) and ``phone``, which is not in the schema. Schemas
    of results name only date, ipv4 and uuid: clients reject some texts that are valid in the other formats.

    Raises:
        RegistrationError: The format is unknown.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if name not in FORMATS:
            raise RegistrationError(f"Unknown format {name!r}. Valid formats: {', '.join(FORMATS)}.")
        self.name: str = name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Add the check after the type's own."""
        from pydantic_core import PydanticCustomError, core_schema  # noqa: PLC0415 - loaded with the first schema

        phrase, check = FORMATS[self.name]

        def checked(value: Any) -> Any:
            if isinstance(value, str) and not check(value):
                raise PydanticCustomError("format", "must be {phrase}", {"phrase": phrase})
            return value

        return core_schema.no_info_after_validator_function(checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Name the format in the schema."""
        checked = f"{CHECKED}{self.name}"
        is_checked = handler.mode == "serialization" and checked in RESULT_FORMATS
        return {**handler(schema), "format": checked if is_checked else self.name}
