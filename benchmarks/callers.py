"""What it costs to know who calls: calls with a signed token, beside the same server that asks nobody."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from targets import LOAD_CORE, Target, rotated, running
from traffic import ERAS, HANDSHAKE, Load, Request, call, check_call, load, open_session

if TYPE_CHECKING:
    from joserfc.jwk import RSAKey
    from plan import Plan

ISSUER, AUDIENCE = "https://login.example.com", "https://bench.example.com/mcp"
SIGNED, OPEN = "with a token", "without"


def signed(plan: Plan) -> list[dict[str, Any]]:
    """Measure `tools/call` of add with a JWT (RS256, 2048 bits), in both eras."""
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, {"kid": "bench"})
    with ExitStack() as stack:
        guarded = stack.enter_context(running(("funcmcp",), BENCH_JWK=json.dumps(key.as_dict(private=False))))[
            "funcmcp"
        ]
        unguarded = stack.enter_context(running(("funcmcp",)))["funcmcp"]
        targets = {SIGNED: guarded, OPEN: unguarded}
        return [_row(plan, targets, era, {"Authorization": f"Bearer {token(key)}"}) for era in ERAS]


def _row(plan: Plan, targets: dict[str, Target], era: str, who: dict[str, str]) -> dict[str, Any]:
    messages = {name: _call(target, era, who if name == SIGNED else {}) for name, target in targets.items()}
    rounds: list[dict[str, Load]] = []
    for turn in range(plan.rounds + 1):
        seconds = plan.seconds if turn else plan.warm_up
        loads = {
            name: load(targets[name].port, messages[name], connections=16, seconds=seconds, core=LOAD_CORE)
            for name in rotated(tuple(targets), turn)
        }
        if turn:
            rounds.append(loads)
    row = {
        "row": "tools/call with a JWT",
        "era": era,
        "tool": "add",
        "connections": 16,
        "rates": {name: round(median(loads[name].rate for loads in rounds)) for name in targets},
        "share_of_open": round(median(loads[SIGNED].rate / loads[OPEN].rate for loads in rounds), 3),
    }
    plan.show(row)
    return row


def _call(target: Target, era: str, who: dict[str, str]) -> Request:
    session = open_session(target.port, who) if era == HANDSHAKE else None
    message = call(era, "add", session)
    message = replace(message, headers={**message.headers, **who})
    check_call(target.port, message, "add")
    return message


def token(key: RSAKey, subject: str = "0f5c2a9e-6f0b-4a6e-9d3c-2b7f1f6f8f11") -> str:
    """Return a token of the size that identity providers give."""
    from joserfc import jwt

    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "azp": "6b1c9c1e-2c5b-4d58-8f4e-5d9f3b7f1a22",
        "scp": "orders.read orders.write",
        "iat": now,
        "nbf": now,
        "exp": now + 3600,
        "jti": "b6a3f1d0c2e84a1f9d7c5e3b1a0f8d6c",
    }
    return jwt.encode({"alg": "RS256", "kid": "bench", "typ": "at+jwt"}, claims, key)
