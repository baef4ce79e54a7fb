"""`FunctionsHost`: a function app as an MCP server, for an ASGI application to serve."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funcmcp import HTTPOptions, MCPServer, ProtocolOptions
from funcmcp._adapters.asgi.application import HTTPRuntime
from funcmcp._protocol.errors import INTERNAL_ERROR
from funcmcp._protocol.loopback import is_loopback
from funcmcp._serving.composition import runtime_of
from funcmcp._text.listing import counted
from funcmcp._transports.http.admission.cors import CORS
from funcmcp._transports.http.endpoints.health import LIVE, READY
from funcmcp._transports.http.status import refuse
from funcmcp_host.app_rules.handler_rules import invoked_functions
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.app_rules.table import breaches_of
from funcmcp_host.durable.app import DurableApp
from funcmcp_host.durable.management import PATH as DURABLE_PATH
from funcmcp_host.extras import Storage
from funcmcp_host.features import AppFeatures, LeftOut
from funcmcp_host.folder import FolderError, read_folder, worker_environment
from funcmcp_host.home_page import home_page
from funcmcp_host.invocation import SSE_PATH, drop_front_end_headers
from funcmcp_host.keys import DURABLE_KEY, DURABLE_NAMES, MCP_KEY, MCP_NAMES, VARIABLE, Keys
from funcmcp_host.paths import canonical
from funcmcp_host.reload import reload_on_change
from funcmcp_host.routes import HTTPTriggers
from funcmcp_host.workers.node_command import node_worker
from funcmcp_host.workers.python_command import python_worker
from funcmcp_host.workers.supervised import RestartPolicy, Supervised, WorkerPool
from funcmcp_host.workers.worker import LoadFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from funcmcp._server.dispatch import Server
    from funcmcp._server.load import Budget
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse
    from funcmcp_host.app_rules.rule import Breach
    from funcmcp_host.folder import CrossOrigin, Folder
    from funcmcp_host.workers.python_command import Engine
    from funcmcp_host.workers.worker import FunctionInfo, SingleWorker

_log = logging.getLogger("funcmcp.host")

PATH = "/runtime/webhooks/mcp"
"""Where the Functions host has the endpoint, so that configurations of clients stay as they are."""

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
"""What pages of other origins may use, if CORS allows them."""

_AWAY = "The function app does not start; try again later."
_RETRY_SECONDS = 5

_FIXED = {"name": "serverName", "version": "serverVersion", "instructions": "instructions"}
"""By option, the member of host.json whose change needs a restart: clients have read it when they connected."""

PORT = 7071
"""The port of Azure Functions Core Tools."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How an app is served.

    Attributes:
        host: The address to listen on. Without keys, only a loopback address leaves everything open.
        port: The port that clients use.
        address_note: The environment variables that have decided both, such as "port from PORT"; "" if none has.
        trusts_proxy: Whether a proxy in front sets the headers of Azure's front end, so that functions get them.
        allows_cross_site: Whether pages of other sites may run the HTTP triggers of an app on a loopback address.
        cross_origin: Which pages may call the app from a browser; by default those that local.settings.json names.
        python: The interpreter of a Python app; by default that of its virtual environment.
        engine: The library that runs the functions of a Python app.
        node: The program that runs a Node app; by default the one on the PATH.
        worker: The command line of a language worker that speaks FunctionRpc. It replaces the workers for Python and
            Node.
        storage: The folder of blobs and queues; by default ``.funcmcp/storage`` in the app.
        blob_service: Whether blobs are in the storage accounts of the app settings, and not in the folder.
        strict: Whether arguments are checked against the tool's input schema before a call.
        timeout: Seconds that a call may take, in place of host.json's; 0 for any time.
        workers: The number of worker processes.
        reload: Load the app again when its files change.
        restart: When a worker that has ended is started again.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    address_note: str = ""
    trusts_proxy: bool = False
    allows_cross_site: bool = False
    cross_origin: CrossOrigin | None = None
    python: str | None = None
    engine: Engine = "auto"
    node: str | None = None
    worker: str | None = None
    storage: Path | None = None
    blob_service: bool = False
    strict: bool = False
    timeout: float | None = None
    workers: int = 1
    reload: bool = False
    restart: RestartPolicy = field(default_factory=RestartPolicy)

    def seconds(self, folder: Folder) -> float | None:
        """Return how many seconds a call of an app may take; None for any time."""
        if self.timeout is None:
            return folder.options.timeout
        return self.timeout or None


class FunctionsHost(HTTPRuntime):
    """A function app, served.

    Args:
        path: The app's folder.
        environment: The environment variables of this process.
        settings: How it is served.

    Raises:
        FolderError: The folder has no function app, or one of its files can't be read.
        KeysError: The keys in the environment can't be used.

    Attributes:
        left_out: The functions that are not served, or can't run.
        app: The app as the rules for apps on Azure see it.
        breaches: What these rules find.
    """

    def __init__(self, path: Path, environment: Mapping[str, str], settings: HostSettings | None = None) -> None:
        self.settings = settings or HostSettings()
        self.app = read_app(path.resolve(), {})
        self.folder: Folder = self._read_folder(path, environment)
        self._environment = environment
        self._reloading: asyncio.Task[None] | None = None
        self.left_out: Sequence[LeftOut] = ()
        self.breaches: Sequence[Breach] = ()
        self._http_count = 0
        self._is_public = not is_loopback(self.settings.host)
        self._keys = Keys.of_environment(environment, required=self._is_public)
        self._access: list[str] = []
        cross_origin = self._cross_origin = self.settings.cross_origin or self.folder.cross_origin
        http = HTTPOptions(
            path=PATH,
            sse=PATH + SSE_PATH,
            allowed_hosts=[f"0.0.0.0:{self.settings.port}"],
            allowed_origins=cross_origin.origins,
            require_session=False,
            ready=[self._check_worker],
        )
        self.mcp = self._new_server(http)
        self._runtime = runtime_of(self.mcp)
        answer: Exchange = self._answer
        if cross_origin.origins:
            answer = CORS(http, otherwise=answer, methods=_METHODS, credentials=cross_origin.credentials)
        super().__init__(canonical(answer), self._runtime.limits)
        self.worker = WorkerPool([self._supervised(number) for number in range(self.settings.workers)])
        self._storage = Storage(
            self.settings.storage or self.folder.path / ".funcmcp" / "storage",
            self.folder.settings,
            uses_service=self.settings.blob_service,
        )
        seconds = self.settings.seconds(self.folder)
        self._durable = self._storage.durable = self._new_durable(seconds)
        self._features = AppFeatures(
            self.server.catalog, self.worker, self._storage, seconds=seconds, strict=self.settings.strict
        )
        self._triggers = HTTPTriggers(
            self.server,
            self.worker,
            keys=self._keys,
            allows_cross_site=self.settings.allows_cross_site,
            seconds=seconds,
            origins=cross_origin.origins,
        )

    def _read_folder(self, path: Path, environment: Mapping[str, str]) -> Folder:
        """Read the app's folder. An app with a worker of its own may be in any language."""
        has_worker = self.settings.worker is not None or bool(invoked_functions(self.app))
        return read_folder(path, environment, has_worker=has_worker)

    def _new_server(self, http: HTTPOptions) -> MCPServer:
        """Return the server, without features, for the options of host.json."""
        options = self.folder.options
        return MCPServer(
            options.name,
            version=options.version,
            instructions=options.instructions,
            http=http,
            sessions="memory" if self.settings.reload else "signed",  # only the former can push list_changed
            protocol=ProtocolOptions(offer_resources=True, offer_prompts=True),
        )

    def _new_durable(self, seconds: float | None) -> DurableApp:
        origin = f"http://localhost:{self.settings.port}"
        key = self._keys.text_of(DURABLE_KEY)
        return DurableApp(self.worker, self.folder, self._storage.folder, origin=origin, key=key, seconds=seconds)

    @property
    def name(self) -> str:
        """The server's name, as clients see it."""
        return self.mcp.name

    @property
    def headers(self) -> Budget:
        """The memory of headers that have not ended."""
        return self.server.load.headers

    @property
    def has_proxies(self) -> bool:
        """Whether connections come from proxies."""
        return self.settings.trusts_proxy

    @property
    def path(self) -> str:
        """Where the endpoint is."""
        return PATH

    @property
    def endpoint(self) -> str:
        """The path of the Streamable HTTP endpoint."""
        return PATH

    @property
    def server(self) -> Server:
        """The features, and the answers to requests."""
        return self._runtime.server

    @property
    def needs_keys(self) -> bool:
        """Whether other machines reach the app, it has no keys, and host.json does not open its endpoint to all."""
        return self._is_public and not self._keys and not self.folder.options.anonymous

    @property
    def _is_open(self) -> bool:
        """Whether the MCP endpoint needs no key: host.json opens it, and the operator has set no key for it."""
        return self.folder.options.anonymous and not self._keys.has_any(MCP_NAMES)

    @property
    def feature_count(self) -> int:
        """The number of tools, resources, templates and prompts."""
        catalog = self.server.catalog
        return len(catalog.tools) + len(catalog.resources) + len(catalog.templates) + len(catalog.prompts)

    @property
    def http_endpoints(self) -> dict[str, list[str]]:
        """The paths of the HTTP triggers, each with its methods; without methods, all are accepted."""
        return self._triggers.endpoints

    @property
    def http_count(self) -> int:
        """The number of functions with HTTP triggers."""
        return self._http_count

    @property
    def summary(self) -> str:
        """The numbers of features, and what runs them."""
        catalog = self.server.catalog
        counts = {
            "tool": len(catalog.tools),
            "resource": len(catalog.resources),
            "template": len(catalog.templates),
            "prompt": len(catalog.prompts),
            "HTTP trigger": self._http_count,
            "durable function": self._durable.count,
        }
        listed = [counted(count, name) for name, count in counts.items() if count]
        return f"{', '.join(listed) or 'no functions'} ({self.worker.description})"

    async def start(self) -> None:
        """Start the workers, offer the app's features, and begin.

        The command line calls this before it serves, to print what is served. The second call, by the ASGI application,
        does nothing.

        Raises:
            LoadFailed: The app can't be loaded.
        """
        if self.has_begun:
            return
        await self.worker.start()
        if self.settings.reload:
            self._reloading = asyncio.create_task(reload_on_change(self.folder.path, self._reload))
        self.begin()

    def begin(self) -> None:
        """Prepare for requests: the process is about to serve."""
        super().begin()
        self._runtime.begin()

    def drain(self) -> None:
        """End the streams that would stay open: the server is about to stop."""
        self._runtime.drain()

    def hurry(self) -> None:
        """End the tasks at once: a second signal has come."""
        self._runtime.hurry()

    async def aclose(self) -> None:
        """End the workers."""
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.gather(self._reloading, return_exceptions=True)
        await self._runtime.aclose()
        await self._triggers.aclose()
        await self._durable.aclose()
        await self.worker.aclose()
        await self._storage.aclose()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if not self.settings.trusts_proxy:
            drop_front_end_headers(request)
        request.path = _of_endpoint(request.path)
        if self._durable.count and f"{request.path}/".startswith(f"{DURABLE_PATH}/"):
            refusal = await self._triggers.check(request, DURABLE_NAMES)
            return refusal or await self._durable.answer(request, self.server)
        if not request.path.startswith(PATH):
            answer = await self._triggers(request)
            answer = answer or home_page(request, self.folder.settings)
            if answer is not None:
                return answer
            if request.path in (LIVE, READY):
                return await self._runtime.exchange(request)
        if not self._is_open and not _continues_stream(request):
            refusal = self._keys.refusal(request, MCP_NAMES)
            if refusal is not None:
                return refusal
        if self.worker.away_seconds > self.settings.restart.wait_seconds:
            return refuse(503, INTERNAL_ERROR, _AWAY, headers=(("retry-after", str(_RETRY_SECONDS)),))
        return await self._runtime.exchange(request)

    async def _check_worker(self) -> bool:
        """Return whether the app runs."""
        return self.has_begun and not self.worker.away_seconds

    def _supervised(self, number: int) -> Supervised:
        """Return one of the workers; the features follow the first one."""
        if number:
            return Supervised(self._make_worker, self.settings.restart)
        return Supervised(self._make_worker, self.settings.restart, self._update)

    def _make_worker(self) -> SingleWorker:
        path, settings = self.folder.path, self.settings
        address = f"localhost:{settings.port}"
        if invoked_functions(self.app):
            from funcmcp_host.workers.handler_worker import HandlerWorker  # noqa: PLC0415 - loads httpx2

            return HandlerWorker(self.folder, address, python=settings.python, node=settings.node)
        environment = worker_environment(self.folder, address)
        if settings.worker is not None:
            try:
                from funcmcp_host.workers.rpc import rpc_worker  # noqa: PLC0415 - loads grpcio
            except ModuleNotFoundError as error:
                raise LoadFailed('A language worker needs: pip install "funcmcp[host-rpc]"') from error
            return rpc_worker(settings.worker, path, environment, log_level=self.folder.options.log_level)
        if self.folder.runtime == "node":
            return node_worker(path, environment, node=settings.node)
        return python_worker(path, environment, python=settings.python, engine=settings.engine)

    def _update(self, functions: Sequence[FunctionInfo]) -> None:
        update = self._features.update(functions)
        left_out = self._triggers.update(update.http, self.folder.options.route_prefix, self._storage)
        self._http_count = len(update.http) - len(left_out)
        previous = self.breaches
        self.app = read_app(self.folder.path, {info.name: info.bindings for info in functions})
        self.breaches = breaches_of(self.app)
        for breach in self.breaches if self.has_begun else ():  # the command shows those at the start
            if breach not in previous:
                _log.warning("%s: %s", breach.subject, breach.text)
        durable = self._durable.update(update.durable, self._storage)
        left_out += [LeftOut(name, reason) for name, reason in durable.items()]
        self.left_out = [*update.left_out, *left_out]
        if not (self.feature_count or self._http_count or self._durable.count):
            _log.warning("The app has no function that funcmcp host can serve. Run funcmcp doctor to find the reason.")
        self._log_access()

    def _log_access(self) -> None:
        """Log the functions that need no key and those that no caller can use, if they have changed."""
        previous, self._access = self._access, list(self._describe_access())
        for line in self._access:
            if line not in previous:
                _log.warning("%s", line)

    def _describe_access(self) -> Iterator[str]:
        """Yield a sentence for each part of the app that is open to other machines, or that no key opens."""
        if self._is_public:
            if self._is_open:
                yield (
                    f"The MCP endpoint is open to every machine that reaches {self.settings.host}: host.json sets "
                    f"webhookAuthorizationLevel to Anonymous, and {VARIABLE} has no {MCP_KEY}."
                )
            names = ", ".join(self._triggers.open_functions)
            if names:
                yield f"HTTP triggers of the level anonymous are open to every machine that reaches the app: {names}."
        if "*" in self._cross_origin.origins and not self._keys.are_required:
            yield "Every page in a browser on this machine can call the app: CORS allows all origins."
        if self._keys.are_required and not self._is_open and not self._keys.has_any(MCP_NAMES):
            yield f"The MCP endpoint answers every request with 401. Set {VARIABLE}={MCP_KEY}=KEY."
        if self._durable.count and self._keys.are_required and not self._keys.has_any(DURABLE_NAMES):
            yield f"The endpoint of Durable Functions answers every request with 401. Set {VARIABLE}={DURABLE_KEY}=KEY."
        yield from self._triggers.shadowing
        for function in self._triggers.closed_functions:
            yield (
                f"The function {function.name} (level {function.level}) answers every request with 401. "
                f"Set {VARIABLE}={function.key}=KEY."
            )

    async def _reload(self) -> None:
        """Load the app again; raise LoadFailed or FolderError, with everything as it was."""
        previous = self.folder
        folder = self._read_folder(previous.path, self._environment)
        if self._is_public and not self._keys and previous.options.anonymous and not folder.options.anonymous:
            raise FolderError(
                "host.json: webhookAuthorizationLevel requires keys, which are read at the start. Restart funcmcp host."
            )
        self._use_folder(folder)
        try:
            await self.worker.replace()
        except BaseException:
            self._use_folder(previous)
            raise
        changed = [name for name in _FIXED if getattr(previous.options, name) != getattr(self.folder.options, name)]
        if changed:
            names = ", ".join(_FIXED[name] for name in changed)
            _log.warning("host.json: the new %s will be used after a restart.", names)

    def _use_folder(self, folder: Folder) -> None:
        self.folder = folder
        self._storage.settings = folder.settings
        self._features.seconds = self._triggers.seconds = self.settings.seconds(self.folder)
        self._durable.use_seconds(self._features.seconds)


def _of_endpoint(path: str) -> str:
    """Return the path of the endpoint for one of it in any case or with more segments; return others as they are."""
    lower = path.lower()
    if not path.isascii() or not f"{lower}/".startswith(f"{PATH}/"):
        return path
    return lower if lower == PATH + SSE_PATH else PATH


def _continues_stream(request: HttpRequest) -> bool:
    """Tell whether a request belongs to an HTTP+SSE stream, whose unguessable id it names."""
    return request.path == PATH + SSE_PATH and request.method == "POST"
