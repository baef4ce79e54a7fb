"""The curl command of docs/explanation/eras.md calls the server above it."""

from __future__ import annotations

import json
import re
import shlex
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.patience import PATIENCE
from tests.serving import serve

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "eras.md").read_text(encoding="utf-8")


def fenced(start: str) -> str:
    """Return the first fenced block whose text begins with *start*, without that beginning."""
    blocks: list[str] = re.findall(rf"^```{start}(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return blocks[0]


def curl() -> tuple[str, dict[str, str], str]:
    """Return the URL, the headers and the body of the curl command."""
    arguments = shlex.split(fenced("sh\ncurl ").replace("\\\n", " "))
    options = list(zip(arguments[1::2], arguments[2::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    (body,) = [value for option, value in options if option == "-d"]
    return arguments[0], {"Accept": "*/*", **headers}, body


def test_the_curl_command_calls_the_tool(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(fenced("python\n"), encoding="utf-8")
    url, headers, request = curl()
    with serve(server) as served:
        connection = HTTPConnection(urlsplit(served.origin).netloc, timeout=PATIENCE)
        connection.request("POST", urlsplit(url).path, request, headers)
        response = connection.getresponse()
        body = json.load(response)
        connection.close()
    assert (url, response.status) == ("http://127.0.0.1:8000/mcp", 200)
    assert body["result"]["structuredContent"] == {"result": ["Lentil soup", "Lentil stew"]}
