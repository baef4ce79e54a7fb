r"""The syntax of regular expressions in ECMA-262 with the ``u`` flag, as clients in JavaScript compile patterns.

`syntax_error` reads a pattern from left to right, as the grammar does. It is not complete in two places: names of
scripts, such as ``\p{Script=Greek}``, are not looked up, and what only the newest engines have (modifiers such as
``(?i:a)``, two groups of one name) is an error.

Source: ECMA-262 2024 "Patterns" with the parameter UnicodeMode.
"""

from __future__ import annotations

import re

_ESCAPES = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", **{sign: sign for sign in "^$\\.*+?()[]{}|/"}}
"""The characters of the escapes with one letter or sign."""

_ESCAPES_IN_CLASSES = {**_ESCAPES, "b": "\b", "-": "-"}
_CLASS_ESCAPES = frozenset("dDsSwW")
_COUNT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_GROUP = re.compile(r"\((?:\?(?::|=|!|<=|<!|<([$_A-Za-z][$_A-Za-z0-9]*)>))?")
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]+)\}")
_CONTROL = re.compile(r"c[A-Za-z]")
_NUMBER = re.compile(r"[1-9][0-9]*")
_NAME = re.compile(r"k<([$_A-Za-z][$_A-Za-z0-9]*)>")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_PROPERTY = re.compile(r"[pP]\{([A-Za-z_]+)(?:=([A-Za-z0-9_]+))?\}")
_MAX_CODE = 0x10FFFF
_CATEGORY_NAMES = ("General_Category", "gc")
_SCRIPT_NAMES = ("Script", "Script_Extensions", "sc", "scx")
_CATEGORIES = frozenset(
    {
        *("C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N"),
        *("Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl"),
        *("Zp", "Zs", "Cased_Letter", "Close_Punctuation", "Combining_Mark", "Connector_Punctuation", "Control"),
        *("Currency_Symbol", "Dash_Punctuation", "Decimal_Number", "Enclosing_Mark", "Final_Punctuation"),
        *("Format", "Initial_Punctuation", "Letter", "Letter_Number", "Line_Separator", "Lowercase_Letter"),
        *("Mark", "Math_Symbol", "Modifier_Letter", "Modifier_Symbol", "Nonspacing_Mark", "Number"),
        *("Open_Punctuation", "Other", "Other_Letter", "Other_Number", "Other_Punctuation", "Other_Symbol"),
        *("Paragraph_Separator", "Private_Use", "Punctuation", "Separator", "Space_Separator", "Spacing_Mark"),
        *("Surrogate", "Symbol", "Titlecase_Letter", "Unassigned", "Uppercase_Letter", "cntrl", "digit", "punct"),
    }
)
_BINARY_PROPERTIES = frozenset(
    {
        *("AHex", "ASCII", "ASCII_Hex_Digit", "Alpha", "Alphabetic", "Any", "Assigned", "Bidi_C", "Bidi_Control"),
        *("Bidi_M", "Bidi_Mirrored", "CI", "CWCF", "CWCM", "CWKCF", "CWL", "CWT", "CWU", "Case_Ignorable"),
        *("Cased", "Changes_When_Casefolded", "Changes_When_Casemapped", "Changes_When_Lowercased"),
        *("Changes_When_NFKC_Casefolded", "Changes_When_Titlecased", "Changes_When_Uppercased", "DI", "Dash"),
        *("Default_Ignorable_Code_Point", "Dep", "Deprecated", "Dia", "Diacritic", "EBase", "EComp", "EMod"),
        *("EPres", "Emoji", "Emoji_Component", "Emoji_Modifier", "Emoji_Modifier_Base", "Emoji_Presentation"),
        *("Ext", "ExtPict", "Extended_Pictographic", "Extender", "Gr_Base", "Gr_Ext", "Grapheme_Base"),
        *("Grapheme_Extend", "Hex", "Hex_Digit", "IDC", "IDS", "IDSB", "IDST", "IDS_Binary_Operator"),
        *("IDS_Trinary_Operator", "ID_Continue", "ID_Start", "Ideo", "Ideographic", "Join_C", "Join_Control"),
        *("LOE", "Logical_Order_Exception", "Lower", "Lowercase", "Math", "NChar", "Noncharacter_Code_Point"),
        *("Pat_Syn", "Pat_WS", "Pattern_Syntax", "Pattern_White_Space", "QMark", "Quotation_Mark", "RI"),
        *("Radical", "Regional_Indicator", "SD", "STerm", "Sentence_Terminal", "Soft_Dotted", "Term"),
        *("Terminal_Punctuation", "UIdeo", "Unified_Ideograph", "Upper", "Uppercase", "VS", "Variation_Selector"),
        *("White_Space", "XIDC", "XIDS", "XID_Continue", "XID_Start", "space"),
    }
)


def syntax_error(pattern: str) -> str | None:
    """Return what ECMA-262 with the ``u`` flag does not have in a pattern. Return None for a valid pattern."""
    try:
        _Pattern(pattern).check()
    except _SyntaxFault as fault:
        return str(fault)
    return None


class _SyntaxFault(ValueError):
    """A construct that the dialect does not have."""


class _Pattern:
    """One pattern, read from left to right.

    Args:
        text: The pattern.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._open_groups: list[bool] = []  # for each open group, whether it is a lookaround
        self._can_repeat = False
        self._groups = 0
        self._names: set[str] = set()
        self._highest_reference = 0
        self._referenced_names: set[str] = set()

    def check(self) -> None:
        while self._position < len(self._text):
            self._term()
        if self._open_groups:
            raise _SyntaxFault("a group without end")
        if self._highest_reference > self._groups:
            raise _SyntaxFault(f"a reference to group {self._highest_reference}, which does not exist")
        for name in self._referenced_names - self._names:
            raise _SyntaxFault(f"a reference to group {name}, which does not exist")

    def _term(self) -> None:
        character = self._text[self._position]
        if character == "(":
            self._group()
        elif character == ")":
            self._end_of_group()
        elif character in "*+?{":
            self._quantifier()
        elif character == "[":
            self._class()
        elif character == "\\":
            self._position += 1
            self._escape()
        elif character in "^$|":
            self._position += 1
            self._can_repeat = False
        elif character in "]}":
            raise _SyntaxFault(f"a {character} without backslash")
        else:
            self._position += 1
            self._can_repeat = True

    def _group(self) -> None:
        match = _GROUP.match(self._text, self._position)
        opening = "" if match is None else match[0]
        if match is None or self._text.startswith("?", match.end()):
            raise _SyntaxFault(f"the group {self._text[self._position : self._position + 4]}")
        if match[1] is not None:
            if match[1] in self._names:
                raise _SyntaxFault(f"two groups with the name {match[1]}")
            self._names.add(match[1])
        is_look = opening in _LOOKS
        if not is_look and opening != "(?:":
            self._groups += 1
        self._open_groups.append(is_look)
        self._position = match.end()
        self._can_repeat = False

    def _end_of_group(self) -> None:
        if not self._open_groups:
            raise _SyntaxFault("a ) without group")
        self._can_repeat = not self._open_groups.pop()
        self._position += 1

    def _quantifier(self) -> None:
        start = self._position
        if self._text[start] == "{":
            match = _COUNT.match(self._text, start)
            if match is None:
                raise _SyntaxFault("a { without backslash")
            if match[3] and _by_size(match[3]) < _by_size(match[1]):
                raise _SyntaxFault(f"{match[0]}, whose limits are in the wrong order")
            self._position = match.end()
        else:
            self._position += 1
        if not self._can_repeat:
            raise _SyntaxFault(f"{self._text[start : self._position]} after what can't be repeated")
        if self._text.startswith("?", self._position):
            self._position += 1
        self._can_repeat = False

    def _escape(self) -> None:
        """Read an escape behind its backslash, outside of a class."""
        self._can_repeat = True
        number = _NUMBER.match(self._text, self._position)
        if number is not None:
            self._highest_reference = max(self._highest_reference, int(number[0][:9]))
            self._position = number.end()
            return
        name = _NAME.match(self._text, self._position)
        if name is not None:
            self._referenced_names.add(name[1])
            self._position = name.end()
            return
        if self._text[self._position : self._position + 1] in ("b", "B"):
            self._position += 1
            self._can_repeat = False
            return
        self._character_escape(in_class=False)

    def _character_escape(self, *, in_class: bool) -> int | None:
        r"""Read an escape behind its backslash. Return its code point, or None for a set such as ``\d``."""
        letter = self._text[self._position : self._position + 1]
        hexadecimal = _HEX.match(self._text, self._position)
        if hexadecimal is not None:
            self._position = hexadecimal.end()
            code = int(hexadecimal[hexadecimal.lastindex or 0], 16)
            if code > _MAX_CODE:
                raise _SyntaxFault(f"the escape \\{hexadecimal[0]}")
            return self._with_low_surrogate(code) if hexadecimal[2] else code
        if letter in ("p", "P"):
            self._property()
            return None
        control = _CONTROL.match(self._text, self._position)
        if control is not None:
            self._position += 2
            return ord(control[0][1]) % 32
        self._position += 1
        if letter in _CLASS_ESCAPES:
            return None
        if letter == "0" and not self._text[self._position : self._position + 1].isdecimal():
            return 0
        escapes = _ESCAPES_IN_CLASSES if in_class else _ESCAPES
        if letter not in escapes:
            raise _SyntaxFault(f"the escape \\{letter}")
        return ord(escapes[letter])

    def _with_low_surrogate(self, code: int) -> int:
        """Return the code point of a surrogate pair of two escapes, or else the given code point."""
        low = _LOW_SURROGATE.match(self._text, self._position)
        if low is None or not 0xD800 <= code <= 0xDBFF:  # noqa: PLR2004 - the high surrogates
            return code
        self._position = low.end()
        return 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00

    def _property(self) -> None:
        match = _PROPERTY.match(self._text, self._position)
        if match is None:
            raise _SyntaxFault(f"the escape \\{self._text[self._position]} without {{name}}")
        name, value = match[1], match[2]
        if value is None:
            is_valid = name in _CATEGORIES or name in _BINARY_PROPERTIES
        else:
            is_valid = name in _SCRIPT_NAMES or (name in _CATEGORY_NAMES and value in _CATEGORIES)
        if not is_valid:
            raise _SyntaxFault(f"the property \\{match[0]}")
        self._position = match.end()

    def _class(self) -> None:
        self._position += 1
        if self._text.startswith("^", self._position):
            self._position += 1
        while not self._text.startswith("]", self._position):
            first = self._class_character()
            is_range = self._text.startswith("-", self._position)
            if is_range and not self._text.startswith("-]", self._position):
                self._position += 1
                last = self._class_character()
                if first is None or last is None:
                    raise _SyntaxFault("a range with a set in a class")
                if last < first:
                    raise _SyntaxFault("a range in the wrong order")
        self._position += 1
        self._can_repeat = True

    def _class_character(self) -> int | None:
        """Read a character or a set of a class. Return its code point, or None for a set."""
        character = self._text[self._position : self._position + 1]
        self._position += 1
        if not character:
            raise _SyntaxFault("a class without end")
        if character == "\\":
            return self._character_escape(in_class=True)
        return ord(character)


def _by_size(digits: str) -> tuple[int, str]:
    """Return a key that sorts numbers of any length: `int` refuses those with more than 4,300 digits."""
    digits = digits.lstrip("0")
    return len(digits), digits
