"""Metrics for Prometheus: its text format at a path of the server, or on a port of its own.

How it works: a reader of the OpenTelemetry SDK makes the metrics of a server a part of prometheus-client's registry. A
port is served by a thread of prometheus-client, so that metrics can be read while the event loop is busy. If another
process has the port, a thread waits for it. After a reload the earlier process has it until its end, so it is an error
only if the port is still taken when that process has to have ended.
"""

from __future__ import annotations

import errno
import logging
import threading
from time import monotonic
from typing import TYPE_CHECKING

try:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest, start_http_server
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'Metrics for Prometheus need: pip install "funcmcp[prometheus]"', name=error.name
    ) from None

from funcmcp._server.drain import CLEANUP_SECONDS, drain_seconds
from funcmcp._server.log import logger, quote
from funcmcp._transports.http.endpoints.custom_routes import Response

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

_RETRY_SECONDS = 1.0
_providers: list[MeterProvider] = []


def provider() -> MeterProvider:
    """Return the provider of all servers of this process whose metrics Prometheus reads."""
    if not _providers:
        _providers.append(MeterProvider([PrometheusMetricReader()]))
    return _providers[0]


def content_of_metrics() -> Response:
    """Return the metrics, as the function of a custom route. It is a plain function: it runs in a worker thread."""
    return Response(generate_latest(REGISTRY), headers={"content-type": CONTENT_TYPE_LATEST})


class MetricsPort:
    """A port of its own for the metrics.

    Args:
        host: The address that it listens on.
        port: The port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._server: WSGIServer | None = None
        self._lock = threading.Lock()
        self._closed: threading.Event | None = None  # while a thread waits for the port

    def open(self, *, has_predecessor: bool = False) -> None:
        """Listen, unless that has begun. A port that is taken is logged: the server works without its metrics.

        Args:
            has_predecessor: Whether an earlier process has the port until it ends.
        """
        if self._server is not None or self._closed is not None:
            return
        try:
            self._server, _ = start_http_server(self._port, self._host)
        except OSError as error:
            is_taken = error.errno == errno.EADDRINUSE
            if not (is_taken and has_predecessor):
                self._log_failure(error)
            if is_taken:
                self._closed = threading.Event()
                report_at = monotonic() + drain_seconds() + 2 * CLEANUP_SECONDS if has_predecessor else None
                arguments = (self._closed, report_at)
                threading.Thread(target=self._open_later, args=arguments, name="funcmcp metrics", daemon=True).start()

    def _open_later(self, closed: threading.Event, report_at: float | None) -> None:
        """Listen as soon as the port is free, unless the server ends before.

        Args:
            closed: Is set when the server ends.
            report_at: When a port that is still taken is logged; None if that has happened.
        """
        while not closed.wait(_RETRY_SECONDS):
            try:
                with self._lock:
                    if not closed.is_set():
                        self._server, _ = start_http_server(self._port, self._host)
            except OSError as error:
                if report_at is not None and monotonic() > report_at:
                    self._log_failure(error)
                    report_at = None
            else:
                level = logging.WARNING if report_at is None else logging.INFO  # as visible as the error before
                logger.log(level, "The metrics are served on %s now.", quote(self._address))
                return

    @property
    def _address(self) -> str:
        return f"{self._host}:{self._port}"

    def _log_failure(self, error: OSError) -> None:
        logger.error("The metrics are not served on %s: %s.", quote(self._address), quote(error.strerror))

    def close(self) -> None:
        """Listen no more."""
        with self._lock:
            if self._closed is not None:
                self._closed.set()
                self._closed = None
            server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
