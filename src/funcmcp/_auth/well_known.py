"""The well-known path of the metadata of protected resources, which an Azure function app needs without the rest.

Source: RFC 9728 section 3.
"""

from __future__ import annotations

WELL_KNOWN = "/.well-known/oauth-protected-resource"
