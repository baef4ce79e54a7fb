"""Types that several tests of authoring use."""

# ruff: noqa: TC003 - tools are made of these hints at run time

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from funcmcp._authoring.schemas.string_formats import Format


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class OrderItem(Camel):
    item_id: str = Field(description="Menu item ID")
    quantity: int = Field(description="Quantity to order", ge=1, le=100)
    modifications: str | None = Field(None, description="Special modifications")


class CreateOrder(Camel):
    """A customer's order."""

    customer_id: str = Field(description="The customer's unique identifier")
    items: list[OrderItem] = Field(description="Order line items")
    notes: str | None = Field(None, description="Special instructions or notes", max_length=500)
    priority: Literal["low", "normal", "high", "urgent"] = Field("normal", description="Order priority level")
    delivery_date: date | None = Field(None, description="Requested delivery date")
    notification_email: Annotated[str | None, Format("email")] = Field(
        None, description="Customer email for notifications"
    )
    discount_percent: Decimal | None = Field(None, description="Discount percentage", ge=0, le=100)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    label: str | None


@dataclass
class Size:
    width: int
    height: int | None


class Address(TypedDict):
    street: str
    city: str | None


class Node(BaseModel):
    name: str
    children: list[Node] = []
