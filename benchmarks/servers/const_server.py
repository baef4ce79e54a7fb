"""The upper limit: read the body, answer a constant of the size of funcmcp's answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BODY = Path(os.environ["BENCH_BODY"]).read_bytes() if "BENCH_BODY" in os.environ else b"{}"
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))],
}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer one request."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send(START)
    await send({"type": "http.response.body", "body": BODY})
