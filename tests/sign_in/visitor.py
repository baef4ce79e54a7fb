"""The browser of programs that open one, with a person: BROWSER="python visitor.py USER %s &"."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.sign_in.browsing import visit  # the program that starts this has another path

if __name__ == "__main__":
    asyncio.run(visit(sys.argv[2], sys.argv[1]))
