"""The options of a server that is a client of an authorization server."""

from __future__ import annotations

import pytest

from funcmcp._auth.client_options import RESERVED, checked_parameters, made_assertion


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_parameter_of_the_server_can_not_be_replaced(name: str) -> None:
    with pytest.raises(ValueError, match=f"OIDC.parameters can't contain {name}"):
        checked_parameters("OIDC.parameters", {"prompt": "", name: "x"})


def test_other_parameters_are_copied() -> None:
    parameters = {"prompt": "", "audience": "a"}
    assert checked_parameters("OIDC.parameters", parameters) == parameters
    assert checked_parameters("OIDC.parameters", parameters) is not parameters
    assert checked_parameters("OIDC.parameters", None) == {}


async def test_an_assertion_comes_from_a_plain_or_an_async_function() -> None:
    async def make() -> str:
        return "b"

    assert (await made_assertion(lambda: "a"), await made_assertion(make)) == ("a", "b")
