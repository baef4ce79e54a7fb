"""Two HTTP functions without any protocol: what a function app costs by itself."""

from __future__ import annotations

import json
import time

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.route("add", methods=["POST"])
async def add(req: func.HttpRequest) -> func.HttpResponse:
    """Add two numbers."""
    numbers = req.get_json()
    return func.HttpResponse(json.dumps({"result": numbers["a"] + numbers["b"]}), mimetype="application/json")


@app.route("nap", methods=["POST"])
def nap(req: func.HttpRequest) -> func.HttpResponse:
    """Wait for something, in a plain function."""
    del req
    time.sleep(0.05)
    return func.HttpResponse(json.dumps({"result": True}), mimetype="application/json")
