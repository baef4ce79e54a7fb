"""Results of tools, shortened to a number of characters.

How it works: models read the texts of a result or its structured content, so each of the two has the whole budget. A
text block that repeats the structured content is written again from what is left of it. Other blocks are shown in
their order: the first one that is too long is shortened, and those behind it are left out. Images, sounds and bytes
stay, because clients do not pass them on as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from funcmcp._protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp._server.budgets.cut_values import Cut, IndivisibleError, end_of_part, shortened, size_of
from funcmcp._server.budgets.full_texts import FullText, JSONWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from funcmcp._server.budgets.cut_values import Faults

    Key: TypeAlias = int | None

STRUCTURED = None
"""The key of the structured content. Blocks have their index."""

_LEAST_TEXT = 200
"""Characters for which a text behind another one is begun."""

_BETWEEN_PARTS = "\n\n"


class Missing(NamedTuple):
    """What is missing in a shortened result.

    Attributes:
        key: The part: the index of a block, or `STRUCTURED`.
        cut: The place in the part; None if the whole part is missing.
    """

    key: Key
    cut: Cut | None


class Mirror(NamedTuple):
    """The text block that repeats structured content.

    Attributes:
        number: Its index.
        is_inner: Whether it has only the member ``result`` of the structured content.
    """

    number: int
    is_inner: bool


class CutResult(NamedTuple):
    """A shortened ``CallToolResult``.

    Attributes:
        result: The result.
        missing: What is missing in it, in order; empty if compact JSON was enough.
        mirror: The block that repeats the structured content; None if there is none.
    """

    result: dict[str, Any]
    missing: list[Missing]
    mirror: Mirror | None = None


def characters_of(result: Mapping[str, Any]) -> int:
    """Return the characters of a result that a model reads: those of its texts or of its structured content."""
    texts = sum(len(_text_in(block) or "") for block in result["content"])
    structured = result.get("structuredContent")
    return texts if structured is None else max(texts, size_of(structured))


def cut_result(result: dict[str, Any], size: int, faults: Faults) -> CutResult:
    """Return a result whose texts, and whose structured content, have at most *size* characters each.

    Args:
        result: A ``CallToolResult`` of the newest revision.
        size: The characters.
        faults: Returns the paths of the parts of structured content that the output schema objects to.

    Raises:
        IndivisibleError: There is no such result.
    """
    structured = result.get("structuredContent")
    if structured is None:
        return _Blocks(size).cut(result)
    mirror = _mirror_of(result["content"], structured)
    short, cuts = structured, list[Cut]()
    if size_of(structured) > size:
        short, cuts = shortened(structured, size, faults)
    texts = {}
    if mirror is not None:
        texts[mirror.number] = mirrored_text(short, is_inner=mirror.is_inner)
    blocks = _Blocks(size, texts).cut(result)
    missing = [*(Missing(STRUCTURED, cut) for cut in cuts), *blocks.missing]
    return CutResult({**blocks.result, "structuredContent": short}, missing, mirror)


def full_text_of(result: Mapping[str, Any], width: int, missing: Iterable[Missing]) -> tuple[FullText, int]:
    """Return the whole text of a result, and where the first of what is missing begins.

    Args:
        result: A ``CallToolResult``.
        width: The characters of a page.
        missing: What is missing in the shortened result.
    """
    structured = result.get("structuredContent")
    mirror = None if structured is None else _mirror_of(result["content"], structured)
    parts: list[tuple[Key, Any]] = []
    for index, block in enumerate(result["content"]):
        text = _text_in(block)
        if text is not None and (mirror is None or index != mirror.number):
            parts.append((index, _container_in(text) or text))
    if structured is not None:
        parts.insert(len(parts) if mirror is None else 0, (STRUCTURED, structured))
    missing = list(missing)
    texts: list[str] = []
    starts: list[int] = []
    length = 0
    for key, value in parts:
        text, begins = _text_of_part(value, width, [lack.cut for lack in missing if lack.key == key])
        starts += [length + begin for begin in begins]
        texts.append(text)
        length += len(text) + len(_BETWEEN_PARTS)
    is_json = len(parts) == 1 and not isinstance(parts[0][1], str)
    return FullText(_BETWEEN_PARTS.join(texts), is_json), min(starts, default=0)


def mirrored_text(structured: Any, *, is_inner: bool) -> str:
    """Return the text block that repeats structured content, or the only member of it."""
    value = structured["result"] if is_inner else structured
    return value if isinstance(value, str) else encode(value).decode()


def _text_of_part(value: Any, width: int, cuts: list[Cut | None]) -> tuple[str, list[int]]:
    """Return the text of a part, and where what is missing in it begins."""
    if isinstance(value, str):
        return value, [0 if cut is None else cut.shown for cut in cuts]
    places = {cut: cut.path if cut.is_text else (*cut.path, cut.shown) for cut in cuts if cut is not None}
    writer = JSONWriter(width, places.values())
    text = writer.text(value)
    starts = []
    for cut in cuts:
        if cut is None:
            starts.append(0)
        else:
            start = writer.starts[places[cut]]
            starts.append(start + len(encode(_at(value, cut.path)[: cut.shown]).decode()) - 1 if cut.is_text else start)
    return text, starts


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _text_in(block: Mapping[str, Any]) -> str | None:
    """Return the text that a model reads of a block; None for an image, a sound or bytes."""
    if block["type"] == "text":
        text: str = block["text"]
        return text
    if block["type"] == "resource":
        content: str | None = block["resource"].get("text")
        return content
    return encode(block).decode() if block["type"] == "resource_link" else None


def _with_text(block: dict[str, Any], text: str) -> dict[str, Any]:
    if block["type"] == "resource":
        return {**block, "resource": {**block["resource"], "text": text}}
    return {**block, "text": text}


def _container_in(text: str) -> Any:
    """Return the object or the array in a JSON text; None for other texts, and for an empty one."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return decode(text.encode())
    except (InvalidJSONError, RepeatedNameError, UnicodeEncodeError):
        return None


def _mirror_of(blocks: list[dict[str, Any]], structured: Any) -> Mirror | None:
    """Return the first block that repeats structured content; None if there is none."""
    has_inner = isinstance(structured, dict) and structured.keys() == {"result"}
    is_inner_of_text = {mirrored_text(structured, is_inner=False): False}
    if has_inner:
        is_inner_of_text[mirrored_text(structured, is_inner=True)] = True
    for index, block in enumerate(blocks):
        if block["type"] != "text":
            continue
        text = block["text"]
        if text in is_inner_of_text:
            return Mirror(index, is_inner_of_text[text])
        container = _container_in(text)
        if container is not None and has_inner and container == structured["result"]:
            return Mirror(index, is_inner=True)
        if container is not None and container == structured:
            return Mirror(index, is_inner=False)
    return None


class _Blocks:
    """Shortens the content blocks of a result.

    Args:
        size: The characters of all texts together.
        texts: The new texts of blocks, by index.
    """

    def __init__(self, size: int, texts: Mapping[int, str] | None = None) -> None:
        self._texts = texts or {}
        self._left = size - sum(map(len, self._texts.values()))
        self._blocks: list[dict[str, Any]] = []
        self._missing: list[Missing] = []
        self._has_ended = False
        self._has_text = bool(texts)

    def cut(self, result: dict[str, Any]) -> CutResult:
        for index, block in enumerate(result["content"]):
            self._add(index, block)
        return CutResult({**result, "content": self._blocks}, self._missing)

    def _add(self, index: int, block: dict[str, Any]) -> None:
        text = self._texts.get(index)
        if text is not None:
            self._blocks.append(_with_text(block, text))
            return
        text = _text_in(block)
        if text is None:
            self._blocks.append(block)
        elif self._has_ended:
            self._missing.append(Missing(index, None))
        elif len(text) <= self._left:
            self._show(block, len(text))
        elif block["type"] == "resource_link" or (self._has_text and self._left < _LEAST_TEXT):
            self._end(Missing(index, None))
        else:
            self._shorten(index, block, text)

    def _shorten(self, index: int, block: dict[str, Any], text: str) -> None:
        value = _container_in(text)
        if value is None:
            end = end_of_part(text, 0, self._left)
            self._show(_with_text(block, text[:end]), end)
            self._end(Missing(index, Cut((), end, len(text), is_text=True)))
            return
        cuts: list[Cut] = []
        try:
            if size_of(value) > self._left:
                value, cuts = shortened(value, self._left, lambda _: ())
        except IndivisibleError:
            if not self._has_text:
                raise
            self._end(Missing(index, None))
            return
        compact = encode(value).decode()
        self._show(_with_text(block, compact), len(compact))
        if cuts:
            self._end(*(Missing(index, cut) for cut in cuts))

    def _show(self, block: dict[str, Any], size: int) -> None:
        self._blocks.append(block)
        self._left -= size
        self._has_text = True

    def _end(self, *missing: Missing) -> None:
        self._missing += missing
        self._has_ended = True
