"""The requests with which an app and its clients manage orchestrations, and the value of a durable client binding.

Source: HttpApiHandler of the Durable Functions extension 3.0, and what azure-functions-durable 1.7 and
durable-functions 3.5 read of its responses.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, quote

from funcmcp_host.durable.answers import AnswerError
from funcmcp_host.durable.hub import ConflictError, UnknownFunctionError
from funcmcp_host.durable.instances import public_history
from funcmcp_host.durable.store import StoreError
from funcmcp_host.durable.turn import EntityRequest, entity_id
from funcmcp_host.json_texts import NestingError, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from funcmcp_host.durable.hub import DurableHub
    from funcmcp_host.durable.instances import Instance

PATH = "/runtime/webhooks/durabletask"
"""Where clients manage orchestrations, as on Azure."""

_ID = "INSTANCEID"
_NOT_IN_IDS = re.compile(r"^@|[/\\#?\x00-\x1f\x7f-\x9f]")
_MAX_ID = 256
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_STARTED_DELAY = 10
_RUNNING_DELAY = 5


class Reply(NamedTuple):
    """The response to a request.

    Attributes:
        status: The HTTP status.
        content: The body, for JSON.
        location: Where the instance can be asked for; None if there is none.
        delay: After how many seconds the client should ask.
    """

    status: int
    content: Any
    location: str | None = None
    delay: int = 0


class Management:
    """Answers requests about orchestrations and entities.

    Args:
        hub: Runs the orchestrations.
        hub_name: The name of the task hub.
        origin: The scheme and authority under which clients reach the app.
        key: The key that clients send; empty without one.
    """

    def __init__(self, hub: DurableHub, *, hub_name: str, origin: str, key: str) -> None:
        self._hub = hub
        self._hub_name = hub_name
        self._base = origin + PATH
        self._query = f"taskHub={quote(hub_name)}&connection=Storage" + (f"&code={quote(key)}" if key else "")
        self._code = f"code={quote(key)}" if key else ""

    def binding(self, rpc_url: str) -> str:
        """Return the value of a durable client binding.

        Args:
            rpc_url: Where the app's libraries send their requests; it ends with a slash.
        """
        code = f"?{self._code}" if self._code else ""
        start = f"{self._base}/orchestrators/{{functionName}}[/{{instanceId}}]"
        value = {
            "taskHubName": self._hub_name,
            "creationUrls": {
                "createNewInstancePostUri": start + code,
                "createAndWaitOnNewInstancePostUri": start + code,
            },
            "managementUrls": self.urls(_ID),
            "baseUrl": self._base,
            "requiredQueryStringParameters": self._code,
            "rpcBaseUrl": rpc_url,
        }
        return json.dumps(value)

    def urls(self, instance_id: str) -> dict[str, str]:
        """Return the URLs for an instance."""
        base = f"{self._base}/instances/{quote(instance_id)}"
        urls = {"id": instance_id, "statusQueryGetUri": f"{base}?{self._query}"}
        for name in ("terminate", "rewind", "suspend", "resume"):
            urls[f"{name}PostUri"] = f"{base}/{name}?reason={{text}}&{self._query}"
        urls["sendEventPostUri"] = f"{base}/raiseEvent/{{eventName}}?{self._query}"
        urls["restartPostUri"] = f"{base}/restart?{self._query}"
        urls["purgeHistoryDeleteUri"] = f"{base}?{self._query}"
        return urls

    def answer(self, method: str, path: str, query: str, body: bytes) -> Reply:
        """Answer a request.

        Args:
            method: Its method.
            path: Its path below the base, decoded.
            query: Its query.
            body: Its body.
        """
        parts = path.strip("/").split("/")
        values = {name: texts[0] for name, texts in parse_qs(query, keep_blank_values=True).items()}
        answer = self._ANSWERS.get((method, parts[0].lower()))
        if answer is None:
            return Reply(404, f"{method} {parts[0]} does not exist.")
        try:
            return answer(self, parts[1:], values, body)
        except UnknownFunctionError as error:
            return Reply(400, {"Message": str(error), "ExceptionMessage": str(error)})
        except ConflictError as error:
            return Reply(409, str(error))
        except (ValueError, AnswerError) as error:
            return Reply(400, {"Message": str(error), "ExceptionMessage": str(error)})
        except StoreError as error:
            return Reply(503, str(error))  # azure-functions-durable takes 500 for an unknown instance

    def _start(self, parts: list[str], query: Mapping[str, str], body: bytes) -> Reply:
        if not 1 <= len(parts) <= 2:  # noqa: PLR2004 - the name and the id
            raise ValueError("The path must be orchestrators/NAME or orchestrators/NAME/ID.")
        instance_id = parts[1] if len(parts) > 1 else uuid.uuid4().hex
        if not instance_id or len(instance_id) > _MAX_ID or _NOT_IN_IDS.search(instance_id):
            raise ValueError(
                "The id of an instance must have 1 to 256 characters, none of / \\ # ?, and no @ at its beginning."
            )
        self._hub.start(parts[0], _decoded(body), instance_id=instance_id, version=query.get("version"))
        return self._started(instance_id)

    def _started(self, instance_id: str) -> Reply:
        urls = self.urls(instance_id)
        return Reply(202, urls, urls["statusQueryGetUri"], _STARTED_DELAY)

    def _read(self, parts: list[str], query: Mapping[str, str], _body: bytes) -> Reply:
        if not parts or not parts[0]:
            return Reply(200, [_status_of(instance, query) for instance in self._matching(query)])
        instance = self._hub.instance(parts[0])
        if instance is None:
            return _unknown(parts[0])
        content = _status_of(instance, query)
        if not instance.has_ended:
            return Reply(202, content, self.urls(instance.id)["statusQueryGetUri"], _RUNNING_DELAY)
        is_error = instance.status == "Failed" and _is_set(query, "returnInternalServerErrorOnFailure", default=False)
        return Reply(500 if is_error else 200, content)

    def _matching(self, query: Mapping[str, str]) -> Iterator[Instance]:
        states = {state.lower() for state in query.get("runtimeStatus", "").split(",") if state}
        prefix = query.get("instanceIdPrefix", "")
        since, until = _time_in(query, "createdTimeFrom") or _EARLIEST, _time_in(query, "createdTimeTo") or _LATEST
        for instance in self._hub.instances():
            if states and instance.status.lower() not in states:
                continue
            if instance.id.startswith(prefix) and since <= datetime.fromisoformat(instance.created) <= until:
                yield instance

    def _purge(self, parts: list[str], query: Mapping[str, str], _body: bytes) -> Reply:
        if parts and parts[0]:
            instance = self._hub.instance(parts[0])
            instances = [] if instance is None else [instance]
        elif _time_in(query, "createdTimeFrom") is None:
            return Reply(400, "Please provide value for 'createdTimeFrom' parameter.")
        else:
            instances = list(self._matching(query))
        ended = [instance for instance in instances if instance.has_ended]
        for instance in ended:
            self._hub.purge(instance)
        return Reply(200 if ended else 404, {"instancesDeleted": len(ended)})

    def _change(self, parts: list[str], query: Mapping[str, str], body: bytes) -> Reply:
        operation = parts[1].lower() if len(parts) > 1 else ""
        change = self._CHANGES.get(operation)
        if change is None:
            return Reply(404, f"Instances have no operation {operation!r}.")
        instance = self._hub.instance(parts[0])
        if instance is None and operation == "restart":
            raise ValueError("InstanceId does not match a valid orchestration instance.")
        if instance is None:
            return _unknown(parts[0])
        return change(self, instance, parts[2:], query, body)

    def _raise(self, instance: Instance, parts: list[str], _query: Mapping[str, str], body: bytes) -> Reply:
        if len(parts) != 1 or not parts[0]:
            raise ValueError("The path must be instances/ID/raiseEvent/NAME.")
        value = _decoded(body)
        if instance.has_ended:
            return _gone(instance)
        self._hub.raise_event(instance, parts[0], value)
        return Reply(202, None)

    def _terminate(self, instance: Instance, _parts: list[str], query: Mapping[str, str], _body: bytes) -> Reply:
        if instance.has_ended:
            return _gone(instance)
        self._hub.terminate(instance, query.get("reason", ""))
        return Reply(202, None)

    def _suspend(self, instance: Instance, _parts: list[str], _query: Mapping[str, str], _body: bytes) -> Reply:
        return self._set_suspended(instance, is_suspended=True)

    def _resume(self, instance: Instance, _parts: list[str], _query: Mapping[str, str], _body: bytes) -> Reply:
        return self._set_suspended(instance, is_suspended=False)

    def _set_suspended(self, instance: Instance, *, is_suspended: bool) -> Reply:
        if instance.has_ended:
            return _gone(instance)
        self._hub.suspend(instance, is_suspended=is_suspended)
        return Reply(202, None)

    def _restart(self, instance: Instance, _parts: list[str], query: Mapping[str, str], _body: bytes) -> Reply:
        has_new_id = query.get("restartWithNewInstanceId", "true").lower() != "false"
        instance_id = uuid.uuid4().hex if has_new_id else instance.id
        self._hub.start(instance.name, instance.input, instance_id=instance_id, version=instance.version)
        return self._started(instance_id)

    def _rewind(self, _instance: Instance, _parts: list[str], _query: Mapping[str, str], _body: bytes) -> Reply:
        return Reply(501, "funcmcp host does not support rewind. Start the orchestration again with restart.")

    def _read_entity(self, parts: list[str], _query: Mapping[str, str], _body: bytes) -> Reply:
        record = self._hub.entity(_entity_of(parts))
        if record is None:
            return Reply(404, None)
        return Reply(200, None if record["state"] is None else json.loads(record["state"]))

    def _delete_entity(self, parts: list[str], _query: Mapping[str, str], _body: bytes) -> Reply:
        self._hub.signal(EntityRequest(_entity_of(parts), "delete"))
        return Reply(202, None)

    def _signal(self, parts: list[str], query: Mapping[str, str], body: bytes) -> Reply:
        self._hub.signal(EntityRequest(_entity_of(parts), query.get("op", ""), _decoded(body)))
        return Reply(202, None)

    _ANSWERS: ClassVar[dict[tuple[str, str], Callable[[Management, list[str], Mapping[str, str], bytes], Reply]]] = {
        ("POST", "orchestrators"): _start,
        ("GET", "instances"): _read,
        ("DELETE", "instances"): _purge,
        ("POST", "instances"): _change,
        ("GET", "entities"): _read_entity,
        ("POST", "entities"): _signal,
        ("DELETE", "entities"): _delete_entity,
    }

    _CHANGES: ClassVar[dict[str, Callable[[Management, Instance, list[str], Mapping[str, str], bytes], Reply]]] = {
        "raiseevent": _raise,
        "terminate": _terminate,
        "suspend": _suspend,
        "resume": _resume,
        "restart": _restart,
        "rewind": _rewind,
    }


def _decoded(body: bytes) -> Any:
    """Return a body, decoded; None for an empty one."""
    if not body.strip():
        return None
    try:
        return loads(body)
    except NestingError:
        raise
    except ValueError:
        raise ValueError("The body must be JSON.") from None


def _entity_of(parts: list[str]) -> str:
    if len(parts) != 2:  # noqa: PLR2004 - the name and the key
        raise ValueError("The path must be entities/NAME/KEY.")
    return entity_id({"name": parts[0], "key": parts[1]})


def _unknown(instance_id: str) -> Reply:
    return Reply(404, f"No instance with ID '{instance_id}' found.")


def _gone(instance: Instance) -> Reply:
    return Reply(410, f"The instance '{instance.id}' is {instance.status}.")


def _status_of(instance: Instance, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the state of an instance."""
    status = {
        "name": instance.name,
        "instanceId": instance.id,
        "runtimeStatus": instance.status,
        "input": instance.input if _is_set(query, "showInput", default=True) else None,
        "customStatus": instance.custom_status,
        "output": instance.output,
        "createdTime": _seconds_of(instance.created),
        "lastUpdatedTime": _seconds_of(instance.updated),
    }
    if _is_set(query, "showHistory", default=False):
        status["historyEvents"] = public_history(
            instance,
            has_inputs=_is_set(query, "showInput", default=True),
            has_outputs=_is_set(query, "showHistoryOutput", default=False),
        )
    return status


def _seconds_of(time: str) -> str:
    """Return a time without its microseconds."""
    return time.partition(".")[0] + "Z"


def _time_in(query: Mapping[str, str], name: str) -> datetime | None:
    """Return a time of a query, in UTC unless it says otherwise; None without a valid one, which Azure ignores."""
    try:
        time = datetime.fromisoformat(query.get(name, ""))
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _is_set(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    return query.get(name, str(default)).lower() == "true"
