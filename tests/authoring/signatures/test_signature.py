from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import pytest

from funcmcp import MCPServer
from funcmcp._authoring.signatures.annotations import parts_of_type
from funcmcp._authoring.signatures.signature import EMPTY, Header, Parameter, Signature, function_name
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from decimal import Decimal

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


def test_postponed_annotations_are_resolved() -> None:
    def add(a: int, b: Annotated[str | None, Header("B")] = None) -> bool:
        return a == len(b or "")

    signature = Signature(add)
    first, second = signature.parameters()
    assert first == Parameter("a", int, EMPTY, int)
    assert second.bare is str
    assert second.default is None
    assert signature.returns() is bool


def test_annotations_of_a_signature_that_a_decorator_set_count() -> None:
    def described(*args: Any, **kwargs: Any) -> str:
        return str((args, kwargs))

    text = inspect.Parameter("text", inspect.Parameter.KEYWORD_ONLY, annotation=str)
    unknown = inspect.Parameter("unknown", inspect.Parameter.KEYWORD_ONLY, annotation="Unknown", default=1)
    described.__signature__ = inspect.Signature([text, unknown])  # type: ignore[attr-defined]  # inspect reads it

    signature = Signature(described)
    assert signature.parameters() == (Parameter("text", str, EMPTY, str), Parameter("unknown", EMPTY, 1, EMPTY))
    assert signature.returns() is str


def test_names_of_the_enclosing_function_are_found() -> None:
    class Local: ...

    def use(it: Local) -> Local:
        return it

    assert Signature(use).parameters() == (Parameter("it", Local, EMPTY, Local),)


def test_a_name_that_comes_later_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(it: Later) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point of the test

    signature = Signature(use)
    assert signature.try_types() is None
    with pytest.raises(RegistrationError, match=r"of use uses the unknown name 'Later'"):
        signature.parameters()
    monkeypatch.setitem(globals(), "Later", bytes)
    assert signature.parameters() == (Parameter("it", bytes, EMPTY, bytes),)


def test_names_of_a_function_that_has_returned_are_gone() -> None:
    def make() -> Any:
        class Local: ...

        def use(it: Local) -> None: ...

        return use

    assert Signature(make()).try_types() is None


def test_an_import_for_type_checkers_only_is_explained() -> None:
    def pay(amount: Decimal) -> None: ...

    with pytest.raises(RegistrationError, match="TYPE_CHECKING"):
        Signature(pay).parameters()


def test_parameters_that_json_can_not_fill_are_refused() -> None:
    def many(*values: int) -> None: ...
    def any_name(**values: int) -> None: ...
    def by_place(a: int, /) -> None: ...

    with pytest.raises(RegistrationError, match=r"many takes \*values"):
        Signature(many)
    with pytest.raises(RegistrationError, match=r"any_name takes \*\*values"):
        Signature(any_name)
    with pytest.raises(RegistrationError, match="by position only"):
        Signature(by_place)
    with pytest.raises(RegistrationError, match="no signature"):
        Signature(max)


def test_an_unbound_method_is_explained() -> None:
    class Tools:
        def add(self, a: int) -> None: ...
        def nothing() -> None: ...  # type: ignore[misc]

    with pytest.raises(RegistrationError, match="looks like a method"):
        Signature(Tools.add)
    assert [parameter.name for parameter in Signature(Tools.add, bound=True).parameters()] == ["a"]
    assert [parameter.name for parameter in Signature(Tools().add).parameters()] == ["a"]
    with pytest.raises(RegistrationError, match="without self"):
        Signature(Tools.nothing, bound=True)


def test_partials_and_callable_objects_have_signatures() -> None:
    class Adder:
        def __call__(self, a: int) -> None: ...

    def add(a: int, b: int) -> None: ...

    assert Signature(Adder()).parameters() == (Parameter("a", int, EMPTY, int),)
    assert Signature(functools.partial(add, 1)).parameters() == (Parameter("b", int, EMPTY, int),)
    assert function_name(functools.partial(functools.partial(add, 1), 2)) == "add"
    assert function_name(Adder()) == "Adder"


def test_every_part_of_a_type_is_seen_once() -> None:
    from dataclasses import dataclass

    @dataclass
    class Node:
        children: list[Any]

    Node.__annotations__["children"] = list[Node]
    mark = Header("X")
    found = list(parts_of_type(dict[str, Annotated[Node, mark] | int]))
    assert mark in found
    assert found.count(Node) == 1
    assert int in found


def test_types_are_read_once_for_all_that_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def counted(function: Any, **options: Any) -> Any:
        read.append(function)
        return get_type_hints(function, **options)

    def add(a: int, b: Annotated[str | None, Header("B")] = None) -> bool:
        return a == len(b or "")

    monkeypatch.setattr("funcmcp._authoring.signatures.signature.get_type_hints", counted)
    mcp = MCPServer("sums")
    mcp.tool(add)
    mcp.prompt(add)
    mcp.resource("sums://{a}{?b}")(add)
    assert read == [add] * 3
