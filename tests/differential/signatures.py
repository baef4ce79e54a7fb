"""Random signatures of tools, and random arguments for them.

A signature is Python source: the classes of its types, and a function ``tool`` that stores its arguments in
``received`` and returns the first of them, or a value of its own. Any process with the names of `vocabulary` can
execute the source, and a reader can repeat a failure with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.differential.leaves import HASHABLE, MADE, POOL, UNHASHABLE, UNSAID, Leaf, described
from tests.differential.vocabulary import KINDS_OF_JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

_MAX_DEPTH = 3
_NAMES = ("alpha", "beta", "gamma", "delta")
STRICT = "'strict': True"
POSITIONS = ("first", "second", "third")
"""The names of the fields of NamedTuples, by which `differences` recognizes their schemas."""

_SHARE_OF_LEAVES = 0.45
_SHARE_OF_MADE_RESULTS = 0.1
_SHARE_OF_NEAR_VALUES = 0.2
_NEAR, _MUTATED, _MISSING, _EXTRA, _NULL = range(5)


@dataclass(frozen=True)
class RandomType:
    """A type of a parameter, a field or a part of another type.

    Attributes:
        text: The annotation.
        example: Returns a JSON value, which almost fits with the given probability in each of its leaves.
        default: A default in Python; empty if there is none.
        accepts_null: Whether null is one of the values.
        classes: The classes that the text refers to, each after those that it refers to itself.
    """

    text: str
    example: Callable[[float], Any]
    default: str = ""
    accepts_null: bool = False
    classes: tuple[RandomClass, ...] = ()


@dataclass(frozen=True)
class Field:
    """A parameter of a tool or a field of a class.

    Attributes:
        name: The name in Python.
        type: The type.
        default: The default in Python; empty if the field has none.
        alias: The name in JSON; empty if it is the one in Python.
    """

    name: str
    type: RandomType
    default: str = ""
    alias: str = ""

    def text(self, rules: frozenset[str]) -> str:
        """Return the declaration of the field under some rules of `differences`."""
        annotation, default = self.annotation(rules), self.default
        if not default and self.type.accepts_null and "optional" in rules:
            default = "None"
        if self.alias:
            call = f"Field({default or '...'}, alias={self.alias!r})"
            return f"{self.name}: {annotation} = {call}"
        return f"{self.name}: {annotation} = {default}" if default else f"{self.name}: {annotation}"

    def annotation(self, rules: frozenset[str]) -> str:
        """Return the type, which accepts null as the default under the rule "null"."""
        if self.default and not self.type.accepts_null and "null" in rules:
            return f"DefaultForNull[{self.type.text}]"
        return self.type.text

    def key(self, rules: frozenset[str]) -> str:
        """Return the declaration of the field in a TypedDict, where a default means that the key may be absent."""
        if self.default:
            omitted = "null" in rules and not self.type.accepts_null
            return f"{self.name}: NotRequired[{'OmittedForNull[' * omitted}{self.type.text}{']' * omitted}]"
        if self.type.accepts_null and "optional" in rules:
            return f"{self.name}: NotRequired[Annotated[{self.type.text}, Field(default=None)]]"
        return f"{self.name}: {self.type.text}"


@dataclass(frozen=True)
class RandomClass:
    """A class with fields.

    Attributes:
        name: The name.
        kind: ``"model"``, ``"dataclass"``, ``"TypedDict"``, ``"NamedTuple"`` or ``"RootModel"``.
        fields: The fields, those without a default first.
        config: Options of a model.
    """

    name: str
    kind: str
    fields: tuple[Field, ...]
    config: str = ""

    def source(self, rules: frozenset[str]) -> str:
        """Return the class's definition under some rules."""
        lines: list[str]
        if self.kind == "RootModel":
            lines = ["pass"]
        elif self.kind == "TypedDict":
            lines = [field.key(rules) for field in self.fields]
        else:
            lines = [field.text(rules) for field in self.fields]
        if self.kind == "NamedTuple" and "named tuples" in rules:
            lines.append("__get_pydantic_core_schema__ = named_tuple_schema")
        options = [option for option in (self.config, STRICT * ("whole numbers" in rules)) if option]
        if options and self.kind in {"model", "RootModel"}:
            lines.insert(0, f"model_config = {{{', '.join(options)}}}")
        if "forbid" in self.config:
            lines.insert(0, f"{UNSAID + json.dumps({'additionalProperties': False})!r}")
        head = {
            "model": f"class {self.name}(BaseModel):",
            "RootModel": f"class {self.name}(RootModel[{self.fields[0].type.text}]):",
            "dataclass": f"@dataclass(kw_only=True)\nclass {self.name}:",
            "TypedDict": f"class {self.name}(TypedDict):",
            "NamedTuple": f"class {self.name}(NamedTuple):",
        }[self.kind]
        return "\n    ".join([head, *lines])


@dataclass(frozen=True)
class Signature:
    """A tool's function.

    Attributes:
        fields: The parameters.
        returns: The annotation of what the function returns.
        result: The expression that it returns; empty if it returns nothing.
    """

    fields: tuple[Field, ...]
    returns: str
    result: str

    def source(self, rules: frozenset[str] = frozenset()) -> str:
        """Return the source of the classes and of the function, under some rules."""
        classes = dict.fromkeys(cls for field in self.fields for cls in field.type.classes)
        parameters = ", ".join(field.text(rules) for field in self.fields)
        names = ", ".join(f"{field.name}={field.name}" for field in self.fields)
        lines = [
            f"def tool(*, {parameters}) -> {self.returns}:",
            f"    received.append(comparable(dict({names})))",
            *([f"    return {self.result}"] if self.result else []),
        ]
        return "\n".join([*(cls.source(rules) for cls in classes), *lines])


class Generator:
    """Makes signatures and arguments.

    Args:
        random: The source of all choices.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._class_count = 0

    def signature(self) -> Signature:
        """Return a signature with one to three parameters."""
        self._class_count = 0
        fields = tuple(self._field(name, 0) for name in _NAMES[: self._random.randint(1, 3)])
        if self._random.random() < _SHARE_OF_MADE_RESULTS:
            return Signature(fields, *self._random.choice(MADE))
        if "Iterable" in fields[0].type.text:
            return Signature(fields, "None", "")
        return Signature(fields, fields[0].type.text, fields[0].name)

    def arguments(self, signature: Signature) -> dict[str, Any]:
        """Return arguments: fitting ones in four of ten calls, otherwise with one of five kinds of faults."""
        fault = self._random.choice((None, None, None, None, _NEAR, _NEAR, _MUTATED, _MISSING, _EXTRA, _NULL))
        near = _SHARE_OF_NEAR_VALUES if fault == _NEAR else 0.0
        arguments = self._members(signature.fields, near)
        if fault == _MISSING and arguments:
            del arguments[self._random.choice(list(arguments))]
        elif fault == _EXTRA:
            arguments["unknown"] = self._random.choice(POOL)
        elif fault in {_NULL, _MUTATED}:
            container, key = self._random.choice(list(_places(arguments)) or [(arguments, "alpha")])
            container[key] = None if fault == _NULL else self._random.choice(POOL)
        return arguments

    def _field(self, name: str, depth: int) -> Field:
        kind = self._type(depth)
        if kind.accepts_null and self._random.random() < 0.5:
            return Field(name, kind, "None")
        if kind.default and self._random.random() < 0.4:
            return Field(name, kind, kind.default)
        return Field(name, kind)

    def _members(self, fields: tuple[Field, ...], near: float) -> dict[str, Any]:
        """Return an object. Members that may be absent are absent at times."""
        present = [field for field in fields if not field.default or self._random.random() < 0.6]
        return {field.alias or field.name: field.type.example(near) for field in present}

    def _type(self, depth: int, *, hashable: bool = False) -> RandomType:
        if hashable or depth == _MAX_DEPTH or self._random.random() < _SHARE_OF_LEAVES:
            rows = HASHABLE if hashable or self._random.random() < 0.85 else UNHASHABLE
            return self._leaf(self._random.choice(rows))
        makers = (
            *(self._optional, self._optional, self._union, self._union, self._list, self._list, self._set),
            *(self._tuple, self._dict, self._class, self._class, self._tagged_union, self._iterable),
            *(self._root_model, self._callable_union),
        )
        return self._random.choice(makers)(depth + 1)

    def _leaf(self, row: Leaf) -> RandomType:
        def example(near: float) -> Any:
            values = row.near if row.near and self._random.random() < near else row.fitting
            return _copied(self._random.choice(values))

        return RandomType(row.annotation(), example, row.default, row.text == "Any")

    def _optional(self, depth: int) -> RandomType:
        inner = self._type(depth)

        def example(near: float) -> Any:
            return None if self._random.random() < 0.2 else inner.example(near)

        return RandomType(f"Optional[{inner.text}]", example, accepts_null=True, classes=inner.classes)

    def _union(self, depth: int) -> RandomType:
        members = [self._type(depth) for _ in range(self._random.randint(2, 3))]
        if self._random.random() < 0.4:
            members[self._random.randrange(len(members))] = self._leaf(_row("str"))
        joined = ", ".join(member.text for member in members)
        return RandomType(
            f"Union[{joined}]",
            lambda near: self._random.choice(members).example(near),
            accepts_null=any(member.accepts_null for member in members),
            classes=_classes(members),
        )

    def _list(self, depth: int) -> RandomType:
        inner = self._type(depth)
        text = self._random.choice(("list[{}]", "list[{}]", "Sequence[{}]", "tuple[{}, ...]"))
        return RandomType(text.format(inner.text), self._items(inner), classes=inner.classes)

    def _iterable(self, depth: int) -> RandomType:
        inner = self._type(depth)
        return RandomType(f"Iterable[{inner.text}]", self._items(inner), classes=inner.classes)

    def _set(self, depth: int) -> RandomType:
        inner = self._type(depth, hashable=True)
        text = self._random.choice(("set[{}]", "frozenset[{}]"))
        return RandomType(text.format(inner.text), self._items(inner))

    def _items(self, inner: RandomType) -> Callable[[float], Any]:
        return lambda near: [inner.example(near) for _ in range(self._random.choice((0, 1, 1, 2, 3)))]

    def _tuple(self, depth: int) -> RandomType:
        members = [self._type(depth) for _ in range(self._random.randint(1, 3))]
        joined = ", ".join(member.text for member in members)
        return RandomType(
            f"tuple[{joined}]",
            lambda near: [member.example(near) for member in members],
            classes=_classes(members),
        )

    def _dict(self, depth: int) -> RandomType:
        inner = self._type(depth)
        keys, names = self._random.choice(
            (("str", ("a", "b", "5")), ("str", ("", "ä")), ("Key", ("1", "-20")), ("Colour", ("red", "blue")))
        )

        def example(near: float) -> Any:
            chosen = self._random.sample(names, self._random.randint(0, len(names)))
            if self._random.random() < near:
                chosen.append("other")
            return {name: inner.example(near) for name in chosen}

        text = f"dict[{keys}, {inner.text}]"
        if keys == "Key":
            text = described(text, {"propertyNames": {"pattern": "^-?[0-9]+$"}})
        return RandomType(text, example, classes=inner.classes)

    def _class(self, depth: int, kind: str = "", tag: str = "") -> RandomType:
        self._class_count += 1
        name = f"C{self._class_count}"
        kind = kind or self._random.choice(("model", "model", "model", "dataclass", "TypedDict", "NamedTuple"))
        fields = [self._field(field, depth) for field in _NAMES[: self._random.randint(0, 3) or 1]]
        if kind == "NamedTuple":
            fields.sort(key=lambda field: (bool(field.default), field.type.accepts_null))
            fields = [replace(field, name=name) for name, field in zip(POSITIONS, fields, strict=False)]
        config = ""
        if kind == "model":
            config = self._random.choice(("", "", "'extra': 'forbid'", "'extra': 'allow'"))
            if self._random.random() < 0.3:
                fields[0] = Field(fields[0].name, fields[0].type, fields[0].default, "firstField")
        if tag:
            kind_field = RandomType(f"Literal[{tag!r}]", lambda near: "wrong" if self._random.random() < near else tag)
            fields.insert(0, Field("kind", kind_field))
        made = RandomClass(name, kind, tuple(fields), config)
        classes = (*_classes([field.type for field in fields]), made)
        return RandomType(name, lambda near: self._members(made.fields, near), classes=classes)

    def _tagged_union(self, depth: int) -> RandomType:
        members = [self._class(depth, "model", tag) for tag in ("cat", "dog")]
        return RandomType(
            f"Annotated[Union[{members[0].text}, {members[1].text}], Field(discriminator='kind')]",
            lambda near: self._random.choice(members).example(near),
            classes=_classes(members),
        )

    def _root_model(self, depth: int) -> RandomType:
        inner = self._type(depth)
        self._class_count += 1
        made = RandomClass(f"C{self._class_count}", "RootModel", (Field("root", inner),))
        return RandomType(made.name, inner.example, classes=(*inner.classes, made))

    def _callable_union(self, depth: int) -> RandomType:
        """Return a union whose discriminator is a function."""
        members = [self._class(depth, "model"), self._leaf(_row("str")), self._leaf(_row("int"))]
        tagged = ", ".join(
            f"Annotated[{member.text}, Tag({tag!r})]" for member, tag in zip(members, KINDS_OF_JSON, strict=True)
        )
        return RandomType(
            f"Annotated[TaggedUnion[{tagged}], Discriminator(kind_of_json)]",
            lambda near: self._random.choice(members).example(near),
            classes=_classes(members),
        )


def _row(text: str) -> Leaf:
    return next(row for row in HASHABLE if row.text == text)


def _classes(types: list[RandomType]) -> tuple[RandomClass, ...]:
    return tuple(cls for kind in types for cls in kind.classes)


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each member of a JSON value as its container and its key."""
    keys: Any = ()
    if isinstance(container, dict):
        keys = list(container)
    elif isinstance(container, list):
        keys = range(len(container))
    for key in keys:
        yield container, key
        yield from _places(container[key])


def _copied(value: Any) -> Any:
    """Return a copy of a JSON value, whose parts can be replaced."""
    if isinstance(value, dict):
        return {name: _copied(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
