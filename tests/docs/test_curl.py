"""The README's request by hand is answered by the README's server."""

from __future__ import annotations

import json
import re
import shlex
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.serving import serve

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def fenced(start: str) -> str:
    found: list[str] = re.findall(rf"^```{start}(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return found[0]


def curl() -> tuple[str, dict[str, str], str]:
    """Return the URL, the headers and the body of the README's curl command."""
    words = shlex.split(fenced("sh\ncurl ").replace("\\\n", " "))
    options = list(zip(words[1::2], words[2::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    (body,) = [value for option, value in options if option == "-d"]
    return words[0], {"Accept": "*/*", **headers}, body


def test_the_curl_command_calls_the_tool(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(fenced("python\n"), encoding="utf-8")
    url, headers, body = curl()
    with serve(server) as served:
        connection = HTTPConnection(urlsplit(served.origin).netloc, timeout=10)
        connection.request("POST", urlsplit(url).path, body, headers)
        response = connection.getresponse()
        answer = json.load(response)
        connection.close()
    assert (url, response.status) == ("http://127.0.0.1:8000/mcp", 200)
    assert answer["result"]["structuredContent"] == {"result": ["Lentil soup", "Lentil stew"]}
