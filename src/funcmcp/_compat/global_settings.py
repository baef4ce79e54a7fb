"""FastMCP's settings of the process: ``fastmcp.settings``."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from funcmcp._compat.server_settings import PROCESS_VALUES
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "FASTMCP_"


@public("funcmcp.compat.fastmcp.settings")
class Settings(BaseModel):
    """The settings of the process. Variables such as ``FASTMCP_PORT`` in the environment are their defaults.

    The address, the paths, the transport, hosts and origins, `stateless_http`, `mask_error_details` and
    `strict_input_validation` hold for servers that are made afterwards. The others change nothing.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(validate_assignment=True, extra="ignore")

    home: Path = Path(os.path.expanduser("~/.local/share/fastmcp"))  # noqa: PTH111 - expanduser() of Path needs a home
    test_mode: bool = False
    log_enabled: bool = True
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    enable_rich_logging: bool = True
    enable_rich_tracebacks: bool = True
    deprecation_warnings: bool = True
    mcp_camelcase_compat: bool = True
    client_raise_first_exceptiongroup_error: bool = True
    telemetry_mode: Literal["native", "propagation_only", "off"] = "native"
    client_init_timeout: float | None = None
    client_disconnect_timeout: float = 5
    client_log_level: str | None = None
    transport: Literal["stdio", "http", "sse", "streamable-http"] = "stdio"
    host: str = "127.0.0.1"
    port: int = 8000
    sse_path: str = "/sse"
    message_path: str = "/messages/"
    streamable_http_path: str = "/mcp"
    debug: bool = False
    mask_error_details: bool = False
    strict_input_validation: bool = False
    include_fastmcp_meta: bool = True
    decorator_mode: Literal["function", "object"] = "function"
    ssrf_trust_proxy: bool = False
    server_dependencies: list[str] = []
    json_response: bool = False
    stateless_http: bool = False
    http_host_origin_protection: bool | Literal["auto"] = False
    http_allowed_hosts: list[str] | None = None
    http_allowed_origins: list[str] | None = None
    http_session_idle_timeout: Annotated[float, Field(gt=0)] | Literal["auto"] | None = "auto"
    mounted_components_raise_on_load_error: bool = False
    show_server_banner: bool = True
    check_for_updates: Literal["stable", "prerelease", "off"] = "stable"

    @model_validator(mode="before")
    @classmethod
    def _with_environment(cls, values: Any) -> Any:
        """Return the values with those of the environment for settings that were not passed."""
        texts = {name: os.environ.get(f"{_PREFIX}{name.upper()}") for name in cls.model_fields}
        variables = {name: _listed(text) if _is_list(name) else text for name, text in texts.items() if text}
        return {**variables, **values} if isinstance(values, dict) else values

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper_case(cls, level: Any) -> Any:
        return level.upper() if isinstance(level, str) else level

    @field_validator("http_session_idle_timeout", mode="before")
    @classmethod
    def _without_none(cls, timeout: Any) -> Any:
        return None if isinstance(timeout, str) and timeout.lower() == "none" else timeout

    def get_setting(self, attr: str) -> Any:
        """Return a setting by its name."""
        return getattr(self, attr)

    def set_setting(self, attr: str, value: Any) -> None:
        """Change a setting.

        Raises:
            AttributeError: The setting does not exist.
        """
        if attr not in type(self).model_fields:
            raise AttributeError(f"Setting {attr} does not exist.")
        setattr(self, attr, value)


class _ProcessSettings(Settings):
    """The settings whose changes hold for the servers of this process."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        PROCESS_VALUES[name] = getattr(self, name)


def _is_list(name: str) -> bool:
    return name in {"server_dependencies", "http_allowed_hosts", "http_allowed_origins"}


def _listed(text: str) -> Any:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [part for part in map(str.strip, text.split(",")) if part]


settings: Settings = _ProcessSettings()
"""The settings of the process."""


@public("funcmcp.compat.fastmcp.utilities.tests")
@contextlib.contextmanager
def temporary_settings(**values: Any) -> Iterator[None]:
    """Change settings of the process within a block.

    Args:
        values: The settings by name.
    """
    before = {name: settings.get_setting(name) for name in values}
    changed = dict(PROCESS_VALUES)
    try:
        for name, value in values.items():
            settings.set_setting(name, value)
        yield
    finally:
        for name, value in before.items():
            settings.set_setting(name, value)
        PROCESS_VALUES.clear()
        PROCESS_VALUES.update(changed)
