r"""Regular expressions in ECMA-262's dialect, which JSON schemas have.

Clients in JavaScript compile a pattern with the ``u`` flag, which rejects escapes such as ``\-`` outside of a class,
``(?i)`` and ``(?P<name>...)``, or without it. Clients in Python use `re`, which has neither ``\p{L}`` nor that flag.
`ecma_pattern` translates what all of them read, and rejects the other constructs. ``\d``, ``\w``, ``\s``, ``\b`` and
``.`` stay, although they match fewer characters in ECMA-262: a client that compares them is stricter than the server.

Source: ECMA-262 "Patterns"; JSON Schema 2020-12 "Regular Expressions"; the documentation of the Rust crate regex.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
"""Characters that ECMA-262 allows after a backslash with the ``u`` flag. In a class, ``-`` is allowed, too."""

_SAME_ESCAPES = frozenset("dDwWsSbBnrtfv")
_NOT_IN_A_CLASS = frozenset("bBAzZ")
_ANCHORS = {"A": "^", "z": "$", "Z": "$"}
_CODES = (
    re.compile(r"\\x([0-9A-Fa-f]{2})"),
    re.compile(r"\\u([0-9A-Fa-f]{4})"),
    re.compile(r"\\[xuU]\{([0-9A-Fa-f]{1,6})\}"),
    re.compile(r"\\U([0-9A-Fa-f]{8})"),
)
_CATEGORY = re.compile(r"\\([pP])(?:\{(C[cfn]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)\}|([CLMNPSZ]))")
_LOOK = re.compile(r"\(\?(?:<?[=!])")
_NAMED_GROUP = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
_LEADING_FLAGS = re.compile(r"\(\?([a-z]+)\)")
_COUNT = re.compile(r"\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)\}")
_POSIX = {"[:alnum:]": "0-9A-Za-z", "[:alpha:]": "A-Za-z", "[:digit:]": "0-9", "[:lower:]": "a-z", "[:upper:]": "A-Z"}
_SET_OPERATORS = ("&&", "--", "~~")
_LAST_ASCII = 127
_LAST_ESCAPED = 0xFFFF
_LAST_CODE = 0x10FFFF
_FOLDED = {"k": "\\u212A", "s": "\\u017F"}
"""Characters beside the two cases of a letter that are equal to it without regard to case."""


class UntranslatableError(ValueError):
    """A pattern contains a construct that ECMA-262 does not have."""


class _Character(NamedTuple):
    r"""One character of a class: its text in ECMA-262, and its code point. None stands for a set, such as ``\d``."""

    text: str
    code: int | None


def _escaped_letter(letter: str, extra: str) -> _Character:
    """Return the character of an escape with one letter or sign; raise UntranslatableError for an unknown one.

    Args:
        letter: What follows the backslash; "" at the end of the pattern.
        extra: Characters that need a backslash beside the usual ones.
    """
    if letter in _SAME_ESCAPES:
        return _Character("\\" + letter, None)
    if letter == "a":
        return _Character("\\u0007", 7)
    if not letter or letter.isalnum() or letter in "<>" or ord(letter) > _LAST_ASCII:
        raise UntranslatableError(f"the escape \\{letter}")
    needs_backslash = letter in _SYNTAX or letter in extra
    return _Character("\\" + letter if needs_backslash else letter, ord(letter))


def ecma_pattern(pattern: str, *, for_clients: bool = True) -> str:
    """Return a pattern of pydantic's or an OpenAPI document's as one of ECMA-262.

    Args:
        pattern: The pattern.
        for_clients: Whether also `re`, and ECMA-262 without the ``u`` flag, must read it in the same way.

    Raises:
        UntranslatableError: The pattern has no equal, or it is not valid.
    """
    flags = _LEADING_FLAGS.match(pattern)
    if flags is None:
        return _checked(_Translation(pattern, for_clients=for_clients).result(), for_clients=for_clients)
    letters = set(flags[1])
    if not letters <= set("isu"):
        raise UntranslatableError(f"the flags {flags[0]}")
    unflagged = pattern[flags.end() :]
    translation = _Translation(
        unflagged, for_clients=for_clients, ignore_case="i" in letters, dot_matches_all="s" in letters
    )
    return _checked(translation.result(), for_clients=for_clients)


def _checked(pattern: str, *, for_clients: bool) -> str:
    """Return a translated pattern. Raise UntranslatableError if clients in Python can't compile it."""
    if for_clients:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UntranslatableError(f"what Python's re lacks ({error.msg})") from None
    return pattern


class _Translation:
    """The translation of one pattern, from left to right.

    Args:
        pattern: The pattern without leading flags.
        for_clients: Whether it must not depend on the ``u`` flag.
        ignore_case: Whether both cases of letters match.
        dot_matches_all: Whether ``.`` matches line breaks.
    """

    def __init__(
        self, pattern: str, *, for_clients: bool, ignore_case: bool = False, dot_matches_all: bool = False
    ) -> None:
        self._pattern = pattern
        self._for_clients = for_clients
        self._ignore_case = ignore_case
        self._dot = "[\\s\\S]" if dot_matches_all else "."
        self._position = 0
        self._groups: list[bool] = []  # for each open group, whether it is a lookaround
        self._can_repeat = False

    def result(self) -> str:
        """Return the translated pattern."""
        pieces = []
        while self._position < len(self._pattern):
            pieces.append(self._piece())
        if self._groups:
            raise UntranslatableError("a group without end")
        return "".join(pieces)

    def _piece(self) -> str:
        character = self._pattern[self._position]
        if character == "(":
            return self._group()
        if character == ")":
            return self._end_of_group()
        if character in "*+?" or _COUNT.match(self._pattern, self._position):
            return self._quantifier()
        if character == "[":
            self._can_repeat = True
            return self._class()
        self._position += 1
        if character in "^$|":
            self._can_repeat = False
            return character
        self._can_repeat = True
        if character == "\\":
            return self._escape()
        if character == ".":
            return self._dot
        if character in "{}]":
            return "\\" + character
        return self._literal(character, character)

    def _group(self) -> str:
        self._can_repeat = False
        for expression, is_look in ((_LOOK, True), (_NAMED_GROUP, False)):
            match = expression.match(self._pattern, self._position)
            if match is not None:
                self._position = match.end()
                self._groups.append(is_look)
                return match[0] if is_look else "("  # Python does not read ECMA-262's names of groups
        opening = "(?:" if self._pattern.startswith("(?:", self._position) else "("
        if opening == "(" and self._pattern.startswith("(?", self._position):
            raise UntranslatableError(f"the group {self._pattern[self._position : self._position + 4]}")
        self._position += len(opening)
        self._groups.append(False)
        return opening

    def _end_of_group(self) -> str:
        if not self._groups:
            raise UntranslatableError("a group without beginning")
        self._position += 1
        self._can_repeat = not self._groups.pop()
        return ")"

    def _quantifier(self) -> str:
        match = _COUNT.match(self._pattern, self._position)
        text = self._pattern[self._position] if match is None else match[0]
        if not self._can_repeat:
            raise UntranslatableError(f"{text} after what can't be repeated")
        self._can_repeat = False
        self._position += len(text)
        if text.startswith("{,"):
            text = "{0" + text[1:]
        if self._pattern.startswith("?", self._position):
            self._position += 1
            text += "?"
        return text

    def _escape(self) -> str:
        """Return the escape before whose second character the position is, outside of a class."""
        letter = self._pattern[self._position : self._position + 1]
        if letter in _ANCHORS:
            self._position += 1
            self._can_repeat = False
            return _ANCHORS[letter]
        if letter in {"b", "B"}:
            if self._pattern.startswith("{", self._position + 1):
                raise UntranslatableError(f"\\{letter}{{...}}")
            self._can_repeat = False
        character = self._escaped(extra="")
        if character.code is None:
            return character.text
        return self._literal(chr(character.code), character.text)

    def _escaped(self, *, extra: str) -> _Character:
        """Read an escape behind its backslash.

        Args:
            extra: Characters that need a backslash beside the usual ones.
        """
        start = self._position - 1
        for expression in _CODES:
            match = expression.match(self._pattern, start)
            if match is not None:
                self._position = match.end()
                code = int(match[1], 16)
                return _Character(_code_point(code), code)
        match = _CATEGORY.match(self._pattern, start)
        if match is not None and self._for_clients:
            raise UntranslatableError(f"{match[0]} without the u flag")
        if match is not None and not self._ignore_case:
            self._position = match.end()
            return _Character(f"\\{match[1]}{{{match[2] or match[3]}}}", None)
        letter = self._pattern[self._position : self._position + 1]
        self._position += 1
        return _escaped_letter(letter, extra)

    def _literal(self, character: str, text: str) -> str:
        """Return a character outside of a class, given its own text."""
        if self._for_clients and ord(character) > _LAST_ESCAPED:
            self._can_repeat = False  # without the u flag, the character is two
        if not self._ignore_case:
            return text
        both_cases = self._both_cases(ord(character), ord(character))
        if both_cases:
            return f"[{text}{both_cases}]"
        return text

    def _both_cases(self, first: int, last: int) -> str:
        """Return what a class needs beside a range of characters, so that it matches both cases of letters."""
        if not self._ignore_case:
            return ""
        if last > _LAST_ASCII:
            raise UntranslatableError("(?i) with characters beyond ASCII")
        letters = [chr(code) for code in range(first, last + 1) if chr(code).isalpha()]
        swapped = "".join(letter.swapcase() for letter in letters)
        folded = "".join(dict.fromkeys(_FOLDED.get(letter.lower(), "") for letter in letters))
        return _as_ranges(swapped) + folded

    def _class(self) -> str:
        self._position += 1
        result = "["
        if self._pattern.startswith("^", self._position):
            self._position += 1
            result = "[^"
        start = self._position
        while self._position == start or not self._pattern.startswith("]", self._position):
            if self._position >= len(self._pattern):
                raise UntranslatableError("a class without end")
            result += self._class_item()
        self._position += 1
        return result + "]"

    def _class_item(self) -> str:
        """Return the next character, set or range of a class."""
        for posix, ranges in _POSIX.items():
            if self._pattern.startswith(posix, self._position):
                if self._ignore_case:
                    raise UntranslatableError(f"(?i) with {posix}")
                self._position += len(posix)
                return ranges
        if self._pattern[self._position : self._position + 2] in _SET_OPERATORS:
            raise UntranslatableError(f"{self._pattern[self._position : self._position + 2]} in a class")
        first = self._class_character()
        is_range = self._pattern.startswith("-", self._position) and not self._pattern.startswith("-]", self._position)
        if not is_range or first.code is None:
            return first.text + ("" if first.code is None else self._both_cases(first.code, first.code))
        self._position += 1
        last = self._class_character()
        if last.code is None or last.code < first.code:
            raise UntranslatableError("an invalid range in a class")
        return f"{first.text}-{last.text}{self._both_cases(first.code, last.code)}"

    def _class_character(self) -> _Character:
        character = self._pattern[self._position : self._position + 1]
        self._position += 1
        if character == "[" or not character:
            raise UntranslatableError("a class in a class")
        if character == "\\":
            if self._pattern[self._position : self._position + 1] in _NOT_IN_A_CLASS:
                raise UntranslatableError("an assertion in a class")
            escaped = self._escaped(extra="-")
            self._check_in_class(escaped.code or 0)
            return escaped
        # A bare "-" here is no operator. Behind a set such as \w, ECMA-262 rejects it without a backslash.
        self._check_in_class(ord(character))
        needs_backslash = character == "]" or (character == "-" and not self._pattern.startswith("]", self._position))
        return _Character("\\" + character if needs_backslash else character, ord(character))

    def _check_in_class(self, code: int) -> None:
        if self._for_clients and code > _LAST_ESCAPED:
            raise UntranslatableError("a character beyond U+FFFF in a class, without the u flag")


def _code_point(code: int) -> str:
    """Return a character in a form that ECMA-262 and Python read."""
    if code > _LAST_CODE:
        raise UntranslatableError("an escape beyond Unicode")
    if code <= _LAST_ESCAPED:
        return f"\\u{code:04X}"
    return chr(code)


def _as_ranges(letters: str) -> str:
    """Return sorted letters as ranges, such as ``A-Z``."""
    runs: list[list[str]] = []
    for letter in letters:
        if runs and ord(letter) == ord(runs[-1][1]) + 1:
            runs[-1][1] = letter
        else:
            runs.append([letter, letter])
    return "".join(first if first == last else f"{first}-{last}" for first, last in runs)
