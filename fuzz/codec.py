"""The codec and a strict reader of the standard library accept the same texts and return the same values."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from funcmcp._protocol.codec import MAX_DEPTH, InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp._protocol.jsonrpc import Malformed, Request, classify

_MAX_DIGITS = 4300
_MAX_REASON = 120


class _RefusedError(ValueError):
    """The reference rejects a text."""


def check(data: bytes) -> None:
    """Fail unless the codec accepts exactly strict JSON, returns the right value, and encodes it without a change."""
    try:
        value = decode(data)
    except RepeatedNameError:
        assert _repeats(_read(data)), "rejected, but no object that the protocol reads has a repeated name"
        return
    except InvalidJSONError as error:
        assert len(str(error)) <= _MAX_REASON
        assert _is_refused(data), "rejected, but it is JSON"
        return
    reference = _read(data)
    assert not _repeats(reference), "accepted, but an object that the protocol reads has a repeated name"
    assert _same(value, _plain(reference)), "the value is wrong"
    _check(value, MAX_DEPTH)
    again = encode(value)
    assert b"\n" not in again
    assert _same(decode(again), value)
    message = classify(value)
    if isinstance(message, Request):
        assert _same(message.message()["params"], value.get("params", {}))
    elif not isinstance(message, Malformed):
        assert isinstance(value, dict)


def _is_refused(data: bytes) -> bool:
    try:
        _check(_read(data), MAX_DEPTH)
    except (_RefusedError, ValueError, RecursionError):
        return True
    return False


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in the order of the text."""


def _read(data: bytes) -> Any:
    """Read a text with the standard library; raise ValueError where the codec must reject it."""
    text = data.decode("utf-8")
    if text.startswith("\ufeff"):
        raise _RefusedError("a byte order mark")
    return json.loads(text, object_pairs_hook=_Pairs, parse_constant=_constant, parse_float=_float, parse_int=_int)


def _constant(name: str) -> NoReturn:
    raise _RefusedError(name)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _RefusedError("a number that is too large")
    return value


def _int(text: str) -> int:
    if len(text.removeprefix("-")) > _MAX_DIGITS:
        raise _RefusedError("too many digits")
    return int(text)


def _check(value: Any, levels: int) -> None:
    """Reject deep nesting and lone surrogates."""
    if isinstance(value, str):
        value.encode()
    if not isinstance(value, list | dict):
        return
    if levels == 0:
        raise _RefusedError("nested too deeply")
    if isinstance(value, dict):
        value = _Pairs(value.items())
    for member in value:
        if isinstance(value, _Pairs):
            member[0].encode()
        _check(member[1] if isinstance(value, _Pairs) else member, levels - 1)


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {name: _plain(member) for name, member in value}
    return [_plain(member) for member in value] if isinstance(value, list) else value


def _repeats(value: Any) -> bool:
    """Return whether an object that the protocol reads has a repeated name."""
    messages = [value] if isinstance(value, _Pairs) or not isinstance(value, list) else value
    for message in messages:
        params = dict(message).get("params") if isinstance(message, _Pairs) else None
        read = [message, params]
        if isinstance(params, _Pairs):
            read += [dict(params).get("arguments"), dict(params).get("_meta")]
        for member in read:
            if isinstance(member, _Pairs) and len(dict(member)) < len(member):
                return True
    return False


def _same(first: Any, second: Any) -> bool:
    """Return whether two values are equal, with their types and the sign of zero."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(_same(first[name], second[name]) for name in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second) and (first != 0 or not isinstance(first, float) or str(first) == str(second))
