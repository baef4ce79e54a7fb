"""FastMCP's client reads each skill of a server, and prints the names and the sizes of its files."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.skills.client import SkillsClientExtension


async def main(url: str) -> None:
    async with Client(url, extensions=[SkillsClientExtension()]) as client:
        skills = [await client.read_skill(str(entry.uri)) for entry in await client.list_skills()]
    print(json.dumps({skill.name: {name: len(data) for name, data in skill.files.items()} for skill in skills}))


asyncio.run(main(sys.argv[1]))
