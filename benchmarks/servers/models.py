"""The nested order that every target takes, the dish that each shows, and the prompt that each writes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field


class Line(BaseModel):
    """One line of an order."""

    item_id: str
    quantity: Annotated[int, Field(ge=1, le=100)]
    note: str | None = None


class Customer(BaseModel):
    """Who orders."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    email: str


class Receipt(BaseModel):
    """What the tool returns."""

    order_id: str
    lines: int
    pieces: int


def receipt_of(customer: Customer, lines: list[Line]) -> Receipt:
    """Do the work of the tool, the same for every target."""
    return Receipt(order_id=f"order-{customer.name}", lines=len(lines), pieces=sum(line.quantity for line in lines))


def dish_of(number: int) -> dict[str, Any]:
    """Return what the resource `menu://dishes/{number}` holds."""
    return {"number": number, "name": "Minestrone", "price": 6.5, "vegetarian": True, "allergens": ["celery"]}


def review_of(code: str) -> str:
    """Return the message of the prompt `review`."""
    return f"Review this code, and name the worst fault first:\n\n{code}"
