"""Checks of configured URLs that authentication depends on."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from funcmcp._protocol.loopback import is_loopback

if TYPE_CHECKING:
    from collections.abc import Collection

_logger = logging.getLogger("funcmcp")

_VISIBLE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_HOST = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


def checked(name: str, url: str, insecure_hosts: Collection[str] = ()) -> SplitResult:
    """Return the parts of an absolute URL whose responses an attacker on the network can't change.

    Args:
        name: The name of the URL in error messages.
        url: The URL.
        insecure_hosts: Hosts to which http is allowed as well, as `checked_insecure_hosts` returns them.

    Raises:
        ValueError: The scheme is neither https nor http on a loopback address or an insecure host, or the URL has a
            user name, a fragment, or characters that a URL or a quoted string of a header can't contain.
    """
    parts = urlsplit(url) if _VISIBLE.fullmatch(url) else SplitResult("", "", "", "", "")
    if not parts.hostname or "@" in parts.netloc or "#" in url:
        raise ValueError(f"{name} must be an absolute URL without user name and fragment, not {url!r}.")
    if parts.scheme == "http" and parts.netloc.lower() in insecure_hosts:
        return parts
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        reason = f"{name} must begin with https:// (http:// only for a loopback address), not {url!r}."
        if parts.scheme == "http" and isinstance(insecure_hosts, InsecureHosts):
            reason += f" For development only: insecure_hosts=[{parts.netloc.lower()!r}]."
        raise ValueError(reason)
    return parts


class InsecureHosts(frozenset[str]):
    """Hosts to which requests may go without TLS. They were checked, and warned of."""


def checked_insecure_hosts(option: str, hosts: Collection[str]) -> InsecureHosts:
    """Return the hosts to which requests may go without TLS, and warn of them, once for the same object.

    Args:
        option: The name of the option in messages.
        hosts: Hosts with their port as in the URL, such as ``"keycloak:8080"``.

    Raises:
        TypeError: *hosts* is one string.
        ValueError: An entry is not a host, such as a URL or a pattern.
    """
    if isinstance(hosts, str):
        raise TypeError(f"{option} is a list of strings, not one string.")
    if isinstance(hosts, InsecureHosts):
        return hosts
    checked_hosts = InsecureHosts(host.lower() for host in hosts)
    for host in checked_hosts:
        if not _HOST.fullmatch(host):
            raise ValueError(f"{option} has hosts with their port, such as 'keycloak:8080', not {host!r}.")
    if checked_hosts:
        _logger.warning(
            "%s: requests to %s go without TLS. Whoever can change the answers can sign in as any user. This is for "
            "development only.",
            option,
            ", ".join(sorted(checked_hosts)),
        )
    return checked_hosts
