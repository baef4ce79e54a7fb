"""Settings of the official SDK that its servers get as objects."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AnyHttpUrl, BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True)
class CacheHint:
    """How long clients may keep the answers to a method: ``MCPServer(cache_hints={"tools/list": CacheHint(60_000)})``.

    Attributes:
        ttl_ms: Milliseconds for which an answer is fresh.
        scope: ``"public"`` if all callers may share an answer, ``"private"`` otherwise.

    Raises:
        ValueError: The time is negative, or the scope is another one.
    """

    ttl_ms: int = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if self.ttl_ms < 0:
            raise ValueError(f"ttl_ms must be >= 0, got {self.ttl_ms}")
        if self.scope not in {"public", "private"}:
            raise ValueError(f"scope must be 'public' or 'private', got {self.scope!r}")


class ClientRegistrationOptions(BaseModel):
    """How clients register at an authorization server of ``auth_server_provider=``.

    Attributes:
        enabled: Whether clients can register by themselves.
        client_secret_expiry_seconds: How long the secret of a client is valid; None without an end.
        valid_scopes: The scopes that a client may request; None for all.
        default_scopes: The scopes of a client that names none.
    """

    enabled: bool = False
    client_secret_expiry_seconds: int | None = None
    valid_scopes: list[str] | None = None
    default_scopes: list[str] | None = None


class RevocationOptions(BaseModel):
    """Whether an authorization server of ``auth_server_provider=`` revokes tokens.

    Attributes:
        enabled: Whether it has the endpoint.
    """

    enabled: bool = False


class AuthSettings(BaseModel):
    """Who issues the tokens of a server, and what they must have.

    Attributes:
        issuer_url: The authorization server.
        service_documentation_url: A page about the authorization server.
        client_registration_options: For ``auth_server_provider=`` only.
        revocation_options: For ``auth_server_provider=`` only.
        required_scopes: The scopes that every caller needs.
        identity_assertion_enabled: For ``auth_server_provider=`` only.
        resource_server_url: The URL of this server, which its metadata name; None for a server without metadata.
        validate_token_resource: Whether tokens must be issued for `resource_server_url`. None means no, and warns.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(url_preserve_empty_path=True)

    issuer_url: AnyHttpUrl
    service_documentation_url: AnyHttpUrl | None = None
    client_registration_options: ClientRegistrationOptions | None = None
    revocation_options: RevocationOptions | None = None
    required_scopes: list[str] | None = None
    identity_assertion_enabled: bool = False
    resource_server_url: AnyHttpUrl | None
    validate_token_resource: bool | None = None

    @model_validator(mode="after")
    def _check_validate_token_resource(self) -> Self:
        if self.validate_token_resource and self.resource_server_url is None:
            raise ValueError("validate_token_resource requires resource_server_url")
        if self.validate_token_resource is None and self.resource_server_url is not None:
            warnings.warn(
                "AuthSettings accepts tokens that were issued for other resources, because validate_token_resource is "
                "not set. Set it to True, or to False if the verifier checks the audience itself.",
                DeprecationWarning,
                stacklevel=3,
            )
        return self


class TransportSecuritySettings(BaseModel):
    """Which hosts and origins a server accepts, as a protection against DNS rebinding.

    Attributes:
        enable_dns_rebinding_protection: Whether Host and Origin are checked.
        allowed_hosts: Values of Host, such as ``"localhost:*"`` for any port.
        allowed_origins: Values of Origin.
    """

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: list[str] = Field(default_factory=list)
    allowed_origins: list[str] = Field(default_factory=list)
