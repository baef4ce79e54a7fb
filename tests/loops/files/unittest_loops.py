"""unittest: each test has a loop of its own."""

from __future__ import annotations

import unittest

from shop import mcp

from funcmcp.testing import Client


class ShopTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(Client(mcp))

    async def test_first(self):
        assert (await self.client.call_tool("use")).text == "open open"

    async def test_second(self):
        assert (await self.client.call_tool("use_in_a_thread")).text == "open open"


if __name__ == "__main__":
    unittest.main()
