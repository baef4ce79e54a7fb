"""The server on the pictures of the page."""

from __future__ import annotations

import asyncio
from datetime import date, datetime, time
from typing import Literal

from pydantic import BaseModel, Field

from funcmcp import Context, MCPServer, ServerInfo

mcp = MCPServer(
    "travel-desk",
    version="2.4.0",
    instructions="Search trips before you book one. Prices are in euros.",
    info=ServerInfo(title="Travel desk"),
)


class Trip(BaseModel):
    """A train."""

    id: str
    departs: time
    arrives: time
    price: float


class Passenger(BaseModel):
    """A person who travels."""

    name: str = Field(description="As in the passport")
    born: date


class Seats(BaseModel):
    """The answer to a question."""

    place: Literal["window", "aisle"]
    insurance: bool = False


TRIPS = [
    Trip(id="ICE-9558", departs=time(6, 29), arrives=time(14, 35), price=79.9),
    Trip(id="ICE-9574", departs=time(12, 54), arrives=time(20, 55), price=59.9),
]


@mcp.tool(read_only=True)
def search_trips(origin: str, destination: str, day: date, travelers: int = 1) -> list[Trip]:  # noqa: ARG001
    """Search trains between two cities.

    Args:
        origin: The city of departure
        destination: The city of arrival
        day: The day of departure
        travelers: The number of persons
    """
    return TRIPS


@mcp.tool(destructive=False)
async def book_trip(  # noqa: D417 - the description of the context would be one for the model
    trip: str, departs: datetime, passengers: list[Passenger], context: Context, note: str = ""
) -> str:
    """Book a trip for one or more passengers.

    Args:
        trip: The id of a trip, as `search_trips` returns it
        departs: The day and time of departure
        passengers: Everybody who travels
        note: A note for the travel desk
    """
    for step, message in enumerate(["Checking the fare", "Holding two seats", "Waiting for the railway"], 1):
        await context.report_progress(step, 5, message)
        await context.log("info", f"{message} of {trip}")
        await asyncio.sleep(0.1)
    answer = await context.elicit("Which seats do you prefer?", Seats)
    return f"{answer.action}: {len(passengers)} seats in {trip} at {departs} {note}"


@mcp.tool(destructive=True)
def cancel_booking(booking: str, reason: Literal["illness", "weather", "other"] = "other") -> str:
    """Cancel a booking and refund what the fare allows."""
    return f"{booking} is cancelled ({reason})."


@mcp.resource("rates://today")
def exchange_rates() -> dict[str, float]:
    """Exchange rates of today."""
    return {"CHF": 0.94, "GBP": 0.86}


@mcp.resource("stations://{city}")
def stations(city: str) -> list[str]:
    """Stations of a city."""
    return [f"{city} Hbf"]


@mcp.prompt
def plan_weekend(city: str, taste: Literal["art", "food"] = "food") -> str:
    """Plan a weekend in a city."""
    return f"Plan a weekend in {city} for somebody who likes {taste}."
