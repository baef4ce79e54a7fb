"""The official JSON Schemas of the protocol's revisions, taken from npm packages of the tests.

The conformance suite has those from 2025-03-26 on inside its bundled source. No package has those of 2024-11-05 and of
the tasks extension: the first is made of its successor's, and of the second there is what the tests use.
"""

from __future__ import annotations

import copy
import functools
import json
import subprocess
from typing import Any

from tests import nodejs
from tests.patience import PATIENCE

_SUITE = "conformance-0.2"
_REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""In the order of the bundle."""

_TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "resultType": {"type": "string"},
        "taskId": {"type": "string"},
        "status": {"enum": ["working", "input_required", "completed", "failed", "cancelled"]},
        "statusMessage": {"type": "string"},
        "createdAt": {"type": "string"},
        "lastUpdatedAt": {"type": "string"},
        "ttlMs": {"type": ["integer", "null"]},
        "pollIntervalMs": {"type": "integer"},
    },
    "required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
}
_TASKS: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "Task": _TASK,
        "CreateTaskResult": {
            "allOf": [
                {"$ref": "#/$defs/Task"},
                {"properties": {"resultType": {"const": "task"}}, "required": ["resultType"]},
            ]
        },
        "GetTaskResult": {
            "allOf": [
                {"$ref": "#/$defs/Task"},
                {
                    "properties": {
                        "resultType": {"const": "complete"},
                        "result": {"type": "object"},
                        "error": {"type": "object", "required": ["code", "message"]},
                        "inputRequests": {"type": "object"},
                    },
                    "required": ["resultType"],
                    "oneOf": [
                        {"properties": {"status": {"enum": ["working", "cancelled"]}}},
                        {"properties": {"status": {"const": "completed"}}, "required": ["result"]},
                        {"properties": {"status": {"const": "failed"}}, "required": ["error"]},
                        {"properties": {"status": {"const": "input_required"}}, "required": ["inputRequests"]},
                    ],
                },
            ]
        },
        "TaskStatusNotification": {
            "type": "object",
            "properties": {"method": {"const": "notifications/tasks"}, "params": {"$ref": "#/$defs/Task"}},
            "required": ["method", "params"],
        },
        "UpdateTaskResult": {"$ref": "#/$defs/Acknowledgement"},
        "CancelTaskResult": {"$ref": "#/$defs/Acknowledgement"},
        "Acknowledgement": {
            "type": "object",
            "properties": {"resultType": {"const": "complete"}},
            "required": ["resultType"],
        },
    },
}


@functools.cache
def packaged_schema(name: str) -> dict[str, Any]:
    """Return the schema of a revision, or of ``"ext-tasks"``; skip the test (fail in CI) if a package is missing."""
    if name == "ext-tasks":
        return _TASKS
    if name == "2024-11-05":
        return _without_additions(packaged_schema("2025-03-26"))
    schema = _bundled()[name]
    definitions = schema.get("$defs") or schema["definitions"]
    number = definitions.get("NumberSchema", {}).get("properties", {})
    for member in {"minimum", "maximum", "default"} & number.keys():
        number[member]["type"] = "number"  # the suite's copies are older than this correction
    return schema


@functools.cache
def _bundled() -> dict[str, dict[str, Any]]:
    script = nodejs.HOME / "official-schemas.mjs"
    bundle = nodejs.package(_SUITE) / "dist" / "index.js"
    command = [str(nodejs.node()), str(script), str(bundle)]
    printed = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True).stdout
    return dict(zip(_REVISIONS, json.loads(printed), strict=True))


def _without_additions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of 2025-03-26 without what 2025-03-26 added to 2024-11-05."""
    schema = copy.deepcopy(schema)
    definitions = schema["definitions"]
    for name in ("AudioContent", "JSONRPCBatchRequest", "JSONRPCBatchResponse", "ToolAnnotations"):
        del definitions[name]
    del definitions["Tool"]["properties"]["annotations"]
    del definitions["ServerCapabilities"]["properties"]["completions"]
    del definitions["ProgressNotification"]["properties"]["params"]["properties"]["message"]
    definitions["JSONRPCMessage"]["anyOf"] = [
        {"$ref": f"#/definitions/JSONRPC{name}"} for name in ("Request", "Notification", "Response", "Error")
    ]
    audio = {"$ref": "#/definitions/AudioContent"}
    for name in ("CreateMessageResult", "PromptMessage", "SamplingMessage"):
        definitions[name]["properties"]["content"]["anyOf"].remove(audio)
    definitions["CallToolResult"]["properties"]["content"]["items"]["anyOf"].remove(audio)
    return schema
