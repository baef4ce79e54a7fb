"""A program that connects to the port for a language worker, and is not the worker."""

from __future__ import annotations

import os
import sys

import grpc

from funcmcp_host.workers.rpc_messages import METHOD, SERVICE, StreamingMessage


def connect(port: int, worker_id: str | None) -> str:
    """Open a stream with a worker's id, or with something that is not a message; return the code of its end."""
    first = (
        b"\xff" if worker_id is None else StreamingMessage(start_stream={"worker_id": worker_id}).SerializeToString()
    )
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            list(channel.stream_stream(f"/{SERVICE}/{METHOD}")(iter([first])))
        except grpc.RpcError as error:
            code: str = error.code().name
            return code
    return "OK"


NOBODY = 65534


if __name__ == "__main__":
    port, worker_id, user = sys.argv[1:]
    if user == "another":
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    sys.stdout.write(connect(int(port), worker_id) + "\n")
