"""Types that tools return, and servers with one tool that returns a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from funcmcp.compat import FastMCP


@dataclass
class Point:
    x: int
    y: int = 0


class Named(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    value: int = Field(serialization_alias="namedValue")


def returning(hint: Any, value: Any) -> FastMCP:
    def answer() -> Any:
        return value

    answer.__annotations__["return"] = hint
    mcp = FastMCP("answers")
    mcp.tool(answer)
    return mcp
