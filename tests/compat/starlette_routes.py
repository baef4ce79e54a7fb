"""Custom routes with Starlette's classes. They are the same for funcmcp.compat and for FastMCP."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.background import BackgroundTask
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.requests import Request  # noqa: TC002 - an annotation of routes
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse

if TYPE_CHECKING:
    from funcmcp.compat import FastMCP


class Events:
    """What the routes have seen, and what they wait for."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.background_ended = threading.Event()
        self.stream_ended = threading.Event()


def add_routes(mcp: FastMCP, events: Events) -> None:  # noqa: C901 - a list of routes
    """Register the routes."""

    @mcp.custom_route("/stream", methods=["GET"])
    async def stream(request: Request) -> Response:
        async def parts() -> Any:
            yield b"first "
            yield b"second"

        return StreamingResponse(parts(), media_type="text/plain")

    @mcp.custom_route("/endless", methods=["GET"])
    async def endless(request: Request) -> Response:
        async def parts() -> Any:
            try:
                while True:
                    yield b"tick\n"
                    await asyncio.sleep(0.01)
            finally:
                events.stream_ended.set()

        return StreamingResponse(parts(), media_type="text/plain")

    @mcp.custom_route("/file", methods=["GET"])
    async def file(request: Request) -> Response:
        return FileResponse(Path(__file__), media_type="text/plain")

    @mcp.custom_route("/status/{value:int}", methods=["GET"])
    async def status(request: Request) -> Response:
        return Response("a body", status_code=request.path_params["value"])

    @mcp.custom_route("/header", methods=["GET"])
    async def header(request: Request) -> Response:
        return Response("a body", headers={"x-a": "b\r\nx-evil: 1"})

    @mcp.custom_route("/plain", methods=["GET"])
    def plain(request: Request) -> Response:
        in_thread = threading.current_thread() is not threading.main_thread()
        return JSONResponse({"in_thread": in_thread, "released": events.release.wait(20)})

    @mcp.custom_route("/release", methods=["GET"])
    async def release(request: Request) -> Response:
        events.release.set()
        return PlainTextResponse("released")

    @mcp.custom_route("/background", methods=["GET"])
    async def background(request: Request) -> Response:
        def work() -> None:
            events.release.wait(20)
            events.background_ended.set()

        return PlainTextResponse("at once", background=BackgroundTask(work))

    @mcp.custom_route("/upload", methods=["POST"])
    async def upload(request: Request) -> Response:
        sizes = [len(part) async for part in request.stream()]
        return JSONResponse(sum(sizes))

    @mcp.custom_route("/form/{name}", methods=["POST", "PUT"])
    async def form(request: Request) -> Response:
        return JSONResponse({"body": (await request.body()).decode(), "name": request.path_params["name"]})

    @mcp.custom_route("/teapot", methods=["GET"])
    async def teapot(request: Request) -> Response:
        raise HTTPException(418, "short and stout", headers={"x-pot": "tea"})

    @mcp.custom_route("/fails", methods=["GET"])
    async def fails(request: Request) -> Response:
        raise RuntimeError("the secret reason")

    @mcp.custom_route("/breaks", methods=["GET"])
    async def breaks(request: Request) -> Response:
        async def parts() -> Any:
            yield b"first"
            raise RuntimeError("the secret reason")

        return StreamingResponse(parts())

    @mcp.custom_route("/class", methods=["GET", "POST"])
    class Endpoint(HTTPEndpoint):
        async def get(self, request: Request) -> Response:
            return PlainTextResponse("got")

    @mcp.custom_route("/url", methods=["GET"], name="self")
    async def url(request: Request) -> Response:
        urls = [request.url_for("self").path, request.url_for("form", name="a").path]
        return JSONResponse(
            {"urls": urls, "has_state": hasattr(request.app, "state"), "query": dict(request.query_params)}
        )

    @mcp.custom_route("/cookies", methods=["GET"])
    async def cookies(request: Request) -> Response:
        response = Response(status_code=204)
        response.set_cookie("a", "1")
        response.set_cookie("b", "2")
        return response
