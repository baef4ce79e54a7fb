"""Records what a version of the proxy seals and stores, so that later versions can be tested with its bytes.

`version_0_1.json` was recorded at commit 49bcfc3b: ``python -m tests.oauth_proxy.recording > version_0_1.json``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from funcmcp.state import MemorySignIns
from tests.oauth_proxy.stage import Browser, Stage


class _Recorded(MemorySignIns):
    """A store whose records can be read."""

    def values(self) -> dict[str, str]:
        return {key: record.value for key, record in self._records.items()}


async def recorded() -> dict[str, Any]:
    """Return the texts of each step of a sign-in, without and with a store. Keys and time are those of `Stage`."""
    return {"without_store": await _steps(Stage()), "with_store": await _stored(_Recorded())}


async def _steps(stage: Stage) -> dict[str, Any]:
    await stage.with_client()
    browser = Browser()
    page = await stage.authorize(browser)
    steps: dict[str, Any] = {"client_id": stage.client_id, "form": page.form, "ask": dict(browser.cookies)}
    upstream = await stage.consent(page, browser)
    [request] = stage.upstream.requests
    steps |= {"request": request._asdict(), "go": dict(browser.cookies)}
    back = await stage.callback(stage.upstream.sign_in(upstream.location), browser)
    steps["code"] = back.query["code"]
    signed_in = await stage.exchange(await stage.code())
    steps["refresh_token"] = signed_in.json["refresh_token"]
    return steps


async def _stored(store: _Recorded) -> dict[str, Any]:
    stage = await Stage(store=store).with_client()
    first = (await stage.exchange(await stage.code())).json["refresh_token"]
    second = (await stage.refresh(first)).json["refresh_token"]
    return {"client_id": stage.client_id, "earlier": first, "refresh_token": second, "records": store.values()}


if __name__ == "__main__":
    json.dump(asyncio.run(recorded()), sys.stdout, indent=1)
    sys.stdout.write("\n")
