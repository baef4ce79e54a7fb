"""Features that are computed at run time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, Limits, MCPError, MCPServer, Principal
from funcmcp._auth.owner import owner_of
from funcmcp._providers import provided
from funcmcp._providers.remote import RemoteProvider
from funcmcp._serving.composition import runtime_of
from funcmcp._state import line_limit
from funcmcp.auth import APIKeys, Auth, Grant
from funcmcp.content import ResourceInfo
from funcmcp.middleware import cache_results
from funcmcp.providers import Provider, tool_from_schema
from funcmcp.testing import Client
from funcmcp.transforms import Hide, ResourcesAsTools, ToolChange, ToolTransform, Transform
from tests import schemas
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.server.parts import prompt, resource, template, text_result, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import ToolHandler

pytestmark = pytest.mark.branches("Lists and requests with features that are computed at run time.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
ADA, EVE = Principal("ada", scopes=frozenset({"read"})), Principal("eve")


class Features(Provider):
    """Serves what a test says, and notes what it was asked."""

    def __init__(self, *features: Any, per_caller: bool = False, refresh: float | None = None) -> None:
        self.features: list[Any] = list(features)
        self.per_caller = per_caller
        self.refresh = refresh
        self.asked: list[Any] = []
        self.error: Exception | None = None

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        self.asked.append(None if caller is None else caller.subject)
        if self.error is not None:
            raise self.error
        if not self.per_caller:
            return self.features
        return [feature for feature in self.features if caller is not None and caller.subject in feature.tags]


class Searchable(Features):
    """Also looks up one feature."""

    async def get(self, kind: Any, key: str, caller: Principal | None) -> Any:
        self.asked.append(key)
        listed: Any = await self.list(caller)
        return next((item for item in listed if isinstance(item, kind) and item.key == key), None)


def shop(provider: Provider, *arguments: Any, **options: Any) -> MCPServer:
    mcp = MCPServer("shop")
    mcp.tool("own")(lambda: "own")
    mcp.add_provider(provider, *arguments, **options)
    return mcp


def saying(text: str) -> ToolHandler:
    async def say(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        return text_result(text)

    return say


async def names(mcp: MCPServer, principal: Principal | None = None) -> list[str]:
    return [item.name for item in await mcp.list_tools(principal=principal)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(provided, "monotonic", clock)
    return clock


@EVERY_REVISION
@pytest.mark.parametrize("kind", [Features, Searchable])
async def test_clients_get_the_features_of_a_provider(revision: str, kind: Callable[..., Features]) -> None:
    provider = kind(tool("add"), resource("data://info"), template("data://days/{day}"), prompt("greet"))
    async with Client(shop(provider, "db"), revision=revision) as client:
        assert (await client.call_tool("db_add")).text == "add"
        assert (await client.read_resource("data://db/info")).contents[0].uri == "data://db/info"
        assert (await client.read_resource("data://db/days/x")).contents[0].uri == "data://db/days/x"
        assert (await client.get_prompt("db_greet")).messages
        assert [item.name for item in await client.list_tools()] == ["own", "db_add"]
        assert [item.uri for item in await client.list_resources()] == ["data://db/info"]
        assert [item.uri_template for item in await client.list_resource_templates()] == ["data://db/days/{day}"]
        assert [item.name for item in await client.list_prompts()] == ["db_greet"]
        with pytest.raises(MCPError, match="Unknown tool: db_none"):
            await client.call_tool("db_none")
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("data://db/none")


async def test_a_process_that_only_answers_calls_never_reads_the_list() -> None:
    change = ToolTransform({"add": ToolChange("plus")})
    provider = Searchable(tool("add"), tool("other"))
    mcp = shop(provider, "db", transforms=[change])
    for _ in range(2):
        assert (await mcp.call_tool("db_plus")).text == "add"
    assert provider.asked == ["add", None]
    with pytest.raises(MCPError, match="Unknown tool"):
        await mcp.call_tool("db_add")
    assert await names(mcp) == ["own", "db_plus", "db_other"]
    asked = len(provider.asked)
    assert (await mcp.call_tool("db_other")).text == "other"
    assert len(provider.asked) == asked


async def test_a_list_is_read_once_and_again_when_the_provider_has_changed() -> None:
    provider = Features(tool("add"))
    mcp = shop(provider)
    assert await names(mcp) == ["own", "add"]
    assert await names(mcp) == ["own", "add"]
    assert provider.asked == [None]
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    provider.features = [tool("first"), *provider.features]
    provider.changed()
    change = await anext(changes)
    assert change.method == "notifications/tools/list_changed"
    assert await names(mcp) == ["own", "first", "add"]
    assert changes.take() == []
    provider.resource_updated("data://info")
    assert (await anext(changes)).uri == "data://info"


async def test_clients_are_notified_before_the_first_list() -> None:
    provider = Features(tool("add"))
    mcp = shop(provider, "db")
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    provider.changed()
    provider.resource_updated("data://info")
    methods = {change.method for change in changes.take()}
    assert "notifications/tools/list_changed" in methods
    assert "notifications/resources/updated" in methods


async def test_a_list_is_read_again_after_some_time(clock: Clock) -> None:
    provider = Features(tool("add"), refresh=60)
    mcp = shop(provider)
    await names(mcp)
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    clock.now += 61
    provider.features = [tool("add")]
    await names(mcp)
    assert (len(provider.asked), changes.take()) == (2, [])
    clock.now += 61
    provider.features = [tool("other")]
    assert await names(mcp) == ["own", "other"]
    assert [change.method for change in changes.take()] == ["notifications/tools/list_changed"]


@pytest.mark.parametrize("is_quick", [True, False])
async def test_a_call_gets_a_list_that_is_due(is_quick: bool, clock: Clock) -> None:
    provider = Features(tool("add"), tool("gone"), refresh=60)
    provider.is_quick = is_quick
    mcp = shop(provider)
    assert (await mcp.call_tool("add")).text == "add"
    provider.features = [tool("add", tool("other").handler)]
    clock.now += 61
    assert (await mcp.call_tool("add")).text == ("other" if is_quick else "add")
    await names(mcp)
    clock.now += 61
    assert (await mcp.call_tool("add")).text == "other"
    with pytest.raises(MCPError, match="Unknown tool: gone"):
        await mcp.call_tool("gone")
    provider.features = []
    clock.now += 61
    if is_quick:
        with pytest.raises(MCPError, match="Unknown tool: add"):
            await mcp.call_tool("add")


@pytest.mark.parametrize("kind", [Features, Searchable])
async def test_a_failure_is_one_line_in_the_log_and_the_last_list_remains(
    kind: Callable[..., Features], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    provider = kind(tool("add"))
    provider.error = OSError("down\nfor maintenance")
    mcp = shop(provider)
    assert await names(mcp) == ["own"]
    with pytest.raises(MCPError, match="Unknown tool"):
        await mcp.call_tool("add")
    assert len(caplog.records) == 1
    assert f"{type(provider).__name__}.list has failed: OSError: down\\nfor maintenance" in caplog.text
    provider.error = None
    clock.now += provided.RETRY_SECONDS
    assert await names(mcp) == ["own", "add"]
    provider.error = OSError("down")
    provider.changed()
    await asyncio.sleep(0)
    assert await names(mcp) == ["own", "add"]
    assert (await mcp.call_tool("add")).text == "add"


async def test_a_provider_that_does_not_answer_delays_a_list_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(provided, "LIST_SECONDS", 0.01)

    class Hanging(Provider):
        async def list(self, caller: Principal | None) -> Iterable[Any]:
            await asyncio.Event().wait()
            return []

    assert await names(shop(Hanging())) == ["own"]
    assert "Hanging.list has failed: no answer in 0.01 seconds" in caplog.text


class Slow(Features):
    """Lists its features when a test allows it."""

    def __init__(self, *features: Any) -> None:
        super().__init__(*features)
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        features = await super().list(caller)
        self.was_asked.set()
        await self.may_answer.wait()
        return features


async def test_all_requests_wait_for_the_first_list() -> None:
    provider = Slow(tool("report"))
    mcp = shop(provider)
    first = asyncio.create_task(mcp.list_tools())
    await provider.was_asked.wait()
    second = asyncio.create_task(mcp.list_tools())
    call = asyncio.create_task(mcp.call_tool("report"))
    for _ in range(10):
        await asyncio.sleep(0)
    provider.may_answer.set()
    for listed in (await first, await second):
        assert [item.name for item in listed] == ["own", "report"]
    await call
    assert provider.asked == [None]


def test_a_list_is_read_again_after_the_event_loop_has_ended_that_read_it() -> None:
    provider = Slow(tool("report"))
    mcp = shop(provider)

    async def begin() -> None:
        listing = asyncio.create_task(mcp.list_tools())
        await provider.was_asked.wait()
        listing.cancel()

    asyncio.run(begin())
    provider.was_asked, provider.may_answer = asyncio.Event(), asyncio.Event()
    provider.may_answer.set()
    assert [item.name for item in asyncio.run(mcp.list_tools())] == ["own", "report"]


async def test_values_that_are_not_features_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    provider = Searchable("ask", tool("add"), "tell")
    mcp = shop(provider)
    assert await names(mcp) == ["own", "add"]
    assert [record.message for record in caplog.records] == [
        "Searchable: a value of the type str is left out. Return features."
    ]


async def test_a_found_value_that_is_not_a_feature_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    class Names(Provider):
        async def get(self, kind: type, key: str, caller: Principal | None) -> Any:
            return key

        async def list(self, caller: Principal | None) -> Iterable[Any]:
            return []

    with pytest.raises(MCPError, match="Unknown tool"):
        await shop(Names()).call_tool("add")
    assert "a value of the type str is left out" in caplog.text


async def test_a_list_that_is_not_async_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Plain(Provider):
        def list(self, caller: Principal | None) -> Any:
            return []

    assert await names(shop(Plain())) == ["own"]
    assert "list must be an async function" in caplog.text


async def test_features_that_do_not_fit_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def failing(feature: Any) -> Any:
        if feature.key == "bad":
            raise ValueError("no")
        return feature

    provider = Features(tool("own"), tool("bad"), tool("add"), refresh=0)
    mcp = shop(provider, transforms=[failing])
    assert await names(mcp) == ["own", "add"]
    assert (await mcp.call_tool("own")).text == "own"
    assert await names(mcp) == ["own", "add"]
    assert [record.getMessage().partition(". ")[0] for record in caplog.records] == [
        "Features: own is left out",
        "Features: bad is left out",
    ]


@pytest.mark.parametrize("kind", [Features, Searchable])
async def test_a_hidden_feature_is_not_replaced_by_that_of_a_provider(kind: Callable[..., Features]) -> None:
    mcp = shop(kind(tool("own"), tool("add")))
    mcp.resource("data://own", name="own")(lambda: "own")
    mcp.disable({"own", "data://own", "add"})
    for name in ("own", "add"):
        with pytest.raises(MCPError, match="Unknown tool"):
            await mcp.call_tool(name)
    with pytest.raises(MCPError, match="Resource not found"):
        await mcp.read_resource("data://own")
    mcp.enable({"add"})
    assert (await mcp.call_tool("add")).text == "add"


@pytest.mark.parametrize("kind", [Features, Searchable])
async def test_each_caller_gets_features_of_its_own(kind: Callable[..., Features]) -> None:
    features = tool("add", tags=frozenset({"ada"})), tool("both", tags=frozenset({"ada", "eve"}))
    provider = kind(*features, template("data://{day}", tags=frozenset({"ada"})), per_caller=True)
    keys = Auth(APIKeys({"ada": "a-key-of-16-characters"}))
    mcp = MCPServer("shop", auth=keys)
    mcp.add_provider(provider, "my")
    assert await names(mcp, ADA) == ["my_add", "my_both"]
    assert await names(mcp, EVE) == ["my_both"]
    assert (await mcp.call_tool("my_add", principal=ADA)).text == "add"
    assert (await mcp.read_resource("data://my/x", principal=ADA)).contents
    with pytest.raises(MCPError, match="Unknown tool: my_add"):
        await mcp.call_tool("my_add", principal=EVE)
    with pytest.raises(MCPError, match="Resource not found"):
        await mcp.read_resource("data://my/x", principal=EVE)
    assert provider.asked == ["ada", "eve"]
    provider.features = [tool("new", tags=frozenset({"ada"}))]
    provider.changed()
    assert await names(mcp, ADA) == ["my_new"]


class Remote(Features, RemoteProvider):
    """Stands for a server with an identity for each caller, which answers when the test says so."""

    name = "remote"

    def __init__(self, *features: Any, optional: bool) -> None:
        super().__init__(*features, per_caller=True)
        self.is_optional = optional
        self.answers = asyncio.Event()
        self.answers.set()

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        await self.answers.wait()
        return await super().list(caller)


@pytest.mark.parametrize("per_caller", [False, True])
async def test_lists_wait_once_for_a_server_that_does_not_answer_when_its_list_is_read_again(
    monkeypatch: pytest.MonkeyPatch, *, per_caller: bool
) -> None:
    remote = Remote(tool("add", tags=frozenset({"ada"})), optional=False)
    remote.per_caller = per_caller
    mcp = shop(remote)
    assert await names(mcp, ADA) == ["own", "add"]
    remote.answers.clear()
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.0)
    remote.changed()
    assert await names(mcp, ADA) == ["own", "add"]
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 1000.0)
    for _ in range(3):
        remote.changed()
        assert await names(mcp, ADA) == ["own", "add"]
        assert (await mcp.call_tool("add", principal=ADA)).text == "add"
    remote.features.append(tool("sub", tags=frozenset({"ada"})))
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    remote.answers.set()
    async for _ in changes:
        if await names(mcp, ADA) == ["own", "add", "sub"]:
            break


class SharedRemote(Features, RemoteProvider):
    """Stands for a server with one list for all callers.

    Attributes:
        away: Whether it can't be reached.
    """

    name = "remote"
    away = False

    @property
    def is_away(self) -> bool:
        return self.away


def doubt(provider: RemoteProvider, owner: str | None, seconds: float) -> None:
    assert provider.on_doubt is not None
    provider.on_doubt(owner, seconds)


async def test_a_list_that_may_have_changed_is_read_with_the_next_request_or_if_clients_listen() -> None:
    provider = SharedRemote(tool("add"))
    mcp = shop(provider)
    doubt(provider, None, 0.0)
    assert await names(mcp) == ["own", "add"]
    provider.features = [tool("other")]
    doubt(provider, None, 0.0)
    await asyncio.sleep(0)
    assert len(provider.asked) == 1
    assert await names(mcp) == ["own", "other"]
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    provider.features = [tool("last")]
    doubt(provider, None, 0.0)
    async with asyncio.timeout(PATIENCE):
        assert (await anext(changes)).method == "notifications/tools/list_changed"
    assert len(provider.asked) == 3


async def test_a_list_that_may_have_changed_is_read_in_the_next_event_loop() -> None:
    provider = SharedRemote(tool("add"))
    mcp = shop(provider)
    await asyncio.to_thread(asyncio.run, names(mcp))
    provider.features = [tool("other")]
    doubt(provider, None, 0.0)
    assert await names(mcp) == ["own", "other"]


async def test_a_list_is_read_as_soon_as_a_server_that_was_away_is_back(clock: Clock) -> None:
    provider = SharedRemote(tool("add"))
    mcp = shop(provider)
    await names(mcp)
    doubt(provider, None, 3600.0)
    provider.error, provider.away = OSError("down"), True
    assert await names(mcp) == ["own", "add"]
    provider.error, provider.features = None, [tool("other")]
    assert await names(mcp) == ["own", "add"]
    provider.away = False
    await mcp.call_tool("add")
    async with asyncio.timeout(PATIENCE):
        while await names(mcp) != ["own", "other"]:  # noqa: ASYNC110 - nothing else asks for the list
            await asyncio.sleep(0)
    provider.error = OSError("broken")
    doubt(provider, None, 3600.0)
    for _ in range(3):  # it is not away, so nothing shows when a further attempt is of use
        await names(mcp)
    assert len(provider.asked) == 4
    clock.now += provided.RETRY_SECONDS
    await names(mcp)
    assert len(provider.asked) == 5


async def test_the_list_of_one_caller_is_read_again_if_it_may_have_changed(clock: Clock) -> None:
    provider = Remote(tool("add", tags=frozenset({"ada", "eve"})), optional=False)
    provider.refresh = 3600.0
    mcp = shop(provider)
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    for caller in (ADA, EVE):
        assert await names(mcp, caller) == ["own", "add"]
    doubt(provider, owner_of(ADA), 0.0)
    doubt(provider, owner_of(Principal("zoe")), 0.0)
    for caller in (ADA, EVE):
        assert await names(mcp, caller) == ["own", "add"]
    assert provider.asked == ["ada", "eve", "ada"]
    assert changes.take() == []
    provider.features = [tool("other", tags=frozenset({"ada"}))]
    doubt(provider, owner_of(ADA), 0.0)
    assert await names(mcp, ADA) == ["own", "other"]
    assert "notifications/tools/list_changed" in [change.method for change in changes.take()]


async def test_a_slow_optional_server_delays_the_list_of_a_caller_for_a_time_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.0)
    provider = Remote(tool("add", tags=frozenset({"ada"})), optional=True)
    mcp = shop(provider)
    changes = mcp._runtime.server.hub.add(lambda _: True)
    provider.answers.clear()
    async with asyncio.timeout(PATIENCE):
        assert await names(mcp, ADA) == ["own"]
        provider.answers.set()
        async for change in changes:
            if "tools" in change.method:
                break
    assert await names(mcp, ADA) == ["own", "add"]


@pytest.mark.parametrize("optional", [False, True])
async def test_the_list_of_a_caller_does_not_wait_for_a_server_that_has_failed(clock: Clock, *, optional: bool) -> None:
    provider = Remote(tool("add", tags=frozenset({"ada"})), optional=optional)
    mcp = shop(provider)
    assert await names(mcp, ADA) == ["own", "add"]
    clock.now += provided.CALLER_SECONDS
    provider.error = OSError("down")
    assert await names(mcp, ADA) == ["own", "add"]
    clock.now += provided.RETRY_SECONDS
    provider.answers.clear()
    async with asyncio.timeout(PATIENCE):
        assert await names(mcp, ADA) == ["own", "add"]
        provider.error = None
        provider.answers.set()
        while len(provider.asked) < 3:  # noqa: ASYNC110 - the provider has no event
            await asyncio.sleep(0)
    assert await names(mcp, ADA) == ["own", "add"]


async def test_one_feature_of_a_caller_is_looked_up_without_the_list() -> None:
    provider = Searchable(tool("add", tags=frozenset({"ada"}), access=tool("x").access), per_caller=True)
    mcp = MCPServer("shop", auth=Auth(APIKeys({"ada": "a-key-of-16-characters"})))
    mcp.add_provider(provider)
    assert (await mcp.call_tool("add", principal=ADA)).text == "add"
    with pytest.raises(MCPError, match="Unknown tool"):
        await mcp.call_tool("add", principal=EVE)
    assert provider.asked == ["add", "ada", "add", "eve"]


async def test_lists_of_callers_are_valid_for_some_time_and_bounded(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provided, "MAX_CALLERS", 2)
    provider = Features(tool("add", tags=frozenset({"ada", "eve", "bob"})), per_caller=True)
    mcp = shop(provider)
    for caller in (ADA, EVE, ADA, Principal("bob"), ADA, EVE):
        await mcp.call_tool("add", principal=caller)
    assert provider.asked == ["ada", "eve", "bob", "eve"]
    clock.now += provided.CALLER_SECONDS
    await mcp.call_tool("add", principal=EVE)
    assert provider.asked[4:] == ["eve"]
    provider.error = OSError("down")
    clock.now += provided.CALLER_SECONDS
    assert (await mcp.call_tool("add", principal=EVE)).text == "add"
    with pytest.raises(MCPError, match="Unknown tool"):
        await mcp.call_tool("add", principal=Principal("zoe"))


async def test_rules_and_transforms_of_the_server_apply_to_features_of_callers() -> None:
    provider = Features(tool("add", tags=frozenset({"ada"})), tool("sub", tags=frozenset({"ada"})), per_caller=True)
    mcp = shop(provider)
    assert await names(mcp, ADA) == ["own", "add", "sub"]
    mcp.disable({"add"})
    assert await names(mcp, ADA) == ["own", "sub"]
    with pytest.raises(MCPError, match="Unknown tool"):
        await mcp.call_tool("add", principal=ADA)
    mcp.add_transform(Hide({"sub"}))
    assert await names(mcp, ADA) == ["own"]


async def test_a_caller_needs_the_scopes_of_a_feature_of_a_provider() -> None:
    mcp = MCPServer("shop", auth=Auth(APIKeys({"ada": "a-key-of-16-characters"})))
    access = tool("x").access._replace(required_scopes=("read",))
    mcp.add_provider(Searchable(tool("add", access=access)))
    assert (await mcp.call_tool("add", principal=ADA)).text == "add"
    with pytest.raises(MCPError, match="More scopes are needed"):
        await mcp.call_tool("add", principal=EVE)


async def test_a_server_that_mounts_another_one_has_the_features_of_its_providers() -> None:
    mounted, later = shop(Features(tool("add"))), MCPServer("later")
    above = MCPServer("above")
    above.mount(mounted, "a")
    above.mount(later, "b")
    later.add_provider(Features(tool("sub")))
    assert (await above.call_tool("b_sub")).text == "sub"
    assert await names(above) == ["a_own", "a_add", "b_sub"]
    with pytest.raises(MCPError, match="Unknown tool"):
        await above.call_tool("a_none")


class Late(Features):
    """Answers after another provider was asked."""

    def __init__(self, *features: Any) -> None:
        super().__init__(*features)
        self.may_answer = asyncio.Event()

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        await self.may_answer.wait()
        return await super().list(caller)


class Early(Features):
    """Lets another provider answer when it is asked."""

    def __init__(self, late: Late, *features: Any) -> None:
        super().__init__(*features)
        self.late = late

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        self.late.may_answer.set()
        return await super().list(caller)


async def test_features_keep_the_places_of_their_providers_however_late_these_answer() -> None:
    late = Late(tool("a"), tool("b"))
    early = Early(late, tool("c"))
    below, above = MCPServer("below"), MCPServer("above")
    below.add_provider(late, transforms=[lambda feature: tool(feature.key)])
    below.add_provider(early)
    above.mount(below)
    above.add_provider(Features(tool("e")))
    above.tool("own")(lambda: "own")
    assert await names(above) == ["own", "a", "b", "c", "e"]
    early.features.append(tool("d"))
    early.changed()
    late.features.reverse()
    late.changed()
    assert await names(above) == ["own", "b", "a", "c", "d", "e"]
    assert await names(below) == ["b", "a", "c", "d"]


@pytest.mark.parametrize("has_transform", [False, True])
async def test_a_name_belongs_to_the_first_provider_however_late_it_answers(
    caplog: pytest.LogCaptureFixture, *, has_transform: bool
) -> None:
    late = Late(tool("a", handler=saying("late")), tool("b"))
    early = Early(late, tool("a", handler=saying("early")), tool("c"))
    mcp = MCPServer("shop")
    if has_transform:
        mcp.add_transform(lambda feature: feature)
    mcp.add_provider(late)
    mcp.add_provider(Features(tool("d")))
    mcp.add_provider(early)
    assert await names(mcp) == ["a", "b", "d", "c"]
    assert (await mcp.call_tool("a")).text == "late"
    assert [line.partition(" Give")[0] for line in caplog.messages] == [
        "Early: a is left out. Duplicate tool name 'a'."
    ]
    del late.features[0]
    late.changed()
    assert await names(mcp) == ["b", "d", "a", "c"]
    assert (await mcp.call_tool("a")).text == "early"
    late.features.append(tool("a", handler=saying("late")))
    late.changed()
    assert await names(mcp) == ["b", "a", "d", "c"]
    assert (await mcp.call_tool("a")).text == "late"
    assert len(caplog.messages) == 1


async def test_a_name_of_a_mounted_server_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    mcp, mounted = MCPServer("shop"), MCPServer("mounted")
    mounted.add_provider(Features(tool("a")))
    mcp.add_provider(Features(tool("a", handler=saying("first")), tool("b")))
    mcp.mount(mounted)
    await mounted.list_tools()
    assert await names(mcp) == ["a", "b"]
    assert (await mcp.call_tool("a")).text == "first"
    assert "mounted: a is left out of the server that mounts it. Duplicate tool name 'a'." in caplog.text
    assert await names(mounted) == ["a"]


@pytest.mark.parametrize(("first", "second"), [(None, "1"), ("1", None), ("1", "1")])
async def test_a_name_belongs_to_the_first_provider_whatever_its_version(first: str | None, second: str | None) -> None:
    late = Late(tool("a", handler=saying("late"), version=first))
    mcp = MCPServer("shop")
    mcp.add_provider(late)
    mcp.add_provider(Early(late, tool("a", handler=saying("early"), version=second)))
    assert await names(mcp) == ["a"]
    assert (await mcp.call_tool("a")).text == "late"


async def test_tools_of_functions_have_their_names_before_those_of_providers(caplog: pytest.LogCaptureFixture) -> None:
    below, above = MCPServer("below"), MCPServer("above")
    above.mount(below)
    above.add_provider(Features(tool("a"), tool("b"), tool("c")))
    assert await names(above) == ["a", "b", "c"]
    above.tool("a")(lambda: "own")
    below.tool("b")(lambda: "below")
    assert await names(above) == ["a", "b", "c"]
    assert [(await above.call_tool(name)).text for name in "abc"] == ["own", "below", "c"]
    assert caplog.text.count("is left out") == 2
    below.disable({"b"})
    assert (await above.call_tool("b")).text == "b"
    below.enable({"b"})
    assert (await above.call_tool("b")).text == "below"
    above.remove_tool("a")
    assert (await above.call_tool("a")).text == "a"


async def test_a_caller_gets_the_feature_of_the_first_provider_that_has_the_name() -> None:
    def saying_for_ada(text: str) -> Features:
        return Features(tool("a", handler=saying(text), tags=frozenset({"ada"})), per_caller=True)

    mcp = MCPServer("shop")
    mcp.add_provider(Features(tool("b")))
    mcp.add_provider(saying_for_ada("first"))
    mcp.add_provider(saying_for_ada("second"))
    mcp.add_provider(Features(tool("A"), tool("a", handler=saying("all")), tool("c")))
    assert await names(mcp, ADA) == ["b", "a", "c"]
    assert await names(mcp) == ["b", "A", "c"]
    for _ in range(20):
        assert (await mcp.call_tool("a", principal=ADA)).text == "first"


@pytest.mark.parametrize("is_mounted", [False, True])
@pytest.mark.parametrize("of_server", [False, True])
async def test_what_a_transform_adds_is_in_the_list_of_a_caller_once(*, is_mounted: bool, of_server: bool) -> None:
    class Adding(Transform):
        def features(self) -> Iterable[Any]:
            return [tool("added")]

    mcp = MCPServer("shop")
    if of_server:
        mcp.add_transform(Adding())
    for name in ("a", "b"):
        provider = Features(tool(name, tags=frozenset({"ada"})), per_caller=True)
        mcp.add_provider(provider, transforms=[] if of_server else [Adding()])
    above = MCPServer("above")
    above.mount(mcp)
    assert await names(above if is_mounted else mcp, ADA) == ["added", "a", "b"]


async def test_a_resource_of_a_list_is_not_that_of_a_server_which_may_have_it_without_listing_it() -> None:
    class Guessing(Remote):
        def unlisted(self, uri: str) -> Any:
            return resource(uri, read)

    async def read(_context: RequestContext, uri: str, _values: Any) -> dict[str, Any]:
        return {"contents": [{"uri": uri, "text": "guessed"}]}

    mcp = MCPServer("shop")
    mcp.add_provider(Guessing(optional=True))
    mcp.add_provider(Features(resource("memo:a")))
    assert [item.uri for item in await mcp.list_resources(principal=ADA)] == ["memo:a"]
    assert (await mcp.read_resource("memo:a", principal=ADA)).text != "guessed"
    assert (await mcp.read_resource("memo:b", principal=ADA)).text == "guessed"


async def test_a_call_waits_for_a_provider_that_may_have_the_name_first() -> None:
    late = Late(tool("a", handler=saying("late"), tags=frozenset({"ada"})))
    late.per_caller = True
    early = Early(late, tool("a", handler=saying("early"), tags=frozenset({"ada"})))
    early.per_caller = True
    mcp = MCPServer("shop")
    mcp.add_provider(late)
    mcp.add_provider(early)
    assert (await mcp.call_tool("a", principal=ADA)).text == "late"


async def test_a_call_does_not_wait_again_for_a_provider_that_has_not_answered_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.01)
    late = Late(tool("a", handler=saying("late")))
    mcp = MCPServer("shop")
    mcp.add_provider(late)
    mcp.add_provider(Features(tool("a", handler=saying("early"))))
    assert (await mcp.call_tool("a")).text == "early"
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 1000.0)
    assert (await mcp.call_tool("a")).text == "early"
    late.may_answer.set()
    assert await names(mcp) == ["a"]
    assert (await mcp.call_tool("a")).text == "late"


@pytest.mark.parametrize("kind", [Features, Searchable])
async def test_features_of_callers_are_mounted(kind: Callable[..., Features]) -> None:
    above = MCPServer("above")
    add = tool("add", tags=frozenset({"ada"}))
    above.mount(shop(kind(add, template("data://{day}", tags=frozenset({"ada"})), per_caller=True)), "sub")
    assert await names(above, ADA) == ["sub_own", "sub_add"]
    assert await names(above, EVE) == ["sub_own"]
    assert (await above.call_tool("sub_add", principal=ADA)).text == "add"
    assert (await above.read_resource("data://sub/x", principal=ADA)).contents
    with pytest.raises(MCPError, match="Unknown tool: sub_add"):
        await above.call_tool("sub_add", principal=EVE)
    with pytest.raises(MCPError, match="Resource not found"):
        await above.read_resource("data://sub/x", principal=EVE)


async def test_nothing_is_remembered_of_features_of_a_request() -> None:
    provider = Features(tool("add"))
    provider.per_request = True
    mcp = shop(provider)
    assert await names(mcp) == ["own", "add"]
    assert (await mcp.call_tool("add")).text == "add"
    provider.features = [tool("subtract")]
    assert await names(mcp) == ["own", "subtract"]
    with pytest.raises(MCPError, match="Unknown tool: add"):
        await mcp.call_tool("add")


async def test_resources_of_a_provider_are_read_through_tools() -> None:
    mcp = shop(Features(template("data://days/{day}")))
    mcp.add_transform(ResourcesAsTools(mcp, templates=False))
    assert not (await mcp.call_tool("read_resource", {"uri": "data://days/x"})).is_error
    assert "data://days/{day}" in (await mcp.call_tool("list_resources")).text


async def test_a_batch_names_features_of_a_provider() -> None:
    from tests.architecture.test_hot_path import post, request

    mcp = MCPServer("shop", sessions=None)
    mcp.add_provider(Features(tool("add")))
    body = b"[%b]" % request("tools/call", {"name": "add", "arguments": {}})
    start, answer = await post(mcp, body, {"mcp-protocol-version": "2025-03-26"})
    assert start["status"] == 200
    assert b'"text":"add"' in answer["body"]


def test_what_is_not_a_provider_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Write mcp.mount\(server\) for another MCPServer"):
        shop(MCPServer("other"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes an object, not a class. Write Features\(\.\.\.\)"):
        shop(Features)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prefix must have letters"):
        shop(Features(), "a b")
    provider = Features()
    with pytest.raises(RuntimeError, match="does not belong to a server yet"):
        _ = provider.services
    provider.changed()
    provider.resource_updated("data://info")
    mcp = shop(provider)
    assert provider.services is mcp.services
    with pytest.raises(RuntimeError, match="belongs to a server already"):
        shop(provider)


async def test_a_provider_without_a_list_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert await names(shop(Provider())) == ["own"]
    assert "Provider has no method list" in caplog.text
    with pytest.raises(NotImplementedError, match="has no method get"):
        await Provider().get(str, "", None)


SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def echo(arguments: dict[str, Any], context: Context) -> str:
    """Return the text."""
    return f"{context.name}: {arguments['text']}"


@EVERY_REVISION
async def test_a_tool_is_made_from_a_schema(revision: str) -> None:
    made = tool_from_schema("say", echo, SCHEMA, read_only=True, tags={"a"}, version="1", meta={"a.b/c": 1})
    async with Client(shop(Features(made)), revision=revision) as client:
        [_, listed] = await client.list_tools()
        schemas.validate_as(listed, revision, "Tool")
        assert (listed.name, listed.description, listed.input_schema) == ("say", "Return the text.", SCHEMA)
        assert (await client.call_tool("say", {"text": "hi"})).text == "say: hi"
        assert (await client.call_tool("say", {"text": 1})).is_error


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"task": "optional"}, "has no task="),
        ({"grant": Grant("github")}, "needs services=mcp.services"),
        ({"colour": "red"}, "Unknown option 'colour'"),
        ({"title": 1}, "title of say must be a string"),
    ],
)
def test_a_wrong_option_of_a_tool_from_a_schema_is_an_error(options: dict[str, Any], text: str) -> None:
    from funcmcp import RegistrationError

    with pytest.raises(RegistrationError, match=text):
        tool_from_schema("say", echo, SCHEMA, **options)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "array"}, "input_schema of bad"),
        ({"type": "object", "properties": {"a": {"x-mcp-header": 1}}}, "x-mcp-header"),
    ],
)
async def test_a_tool_with_a_wrong_schema_is_left_out_alone(
    schema: dict[str, Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Rows(Provider):
        async def list(self, caller: Principal | None) -> Iterable[Any]:
            return [tool_from_schema("bad", echo, schema), tool_from_schema("say", echo, SCHEMA)]

    mcp = MCPServer("shop")
    mcp.add_provider(Rows())
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["say"]
        assert (await client.call_tool("say", {"text": "hi"})).text == "say: hi"
        assert (await client.call_tool("bad")).is_error
    assert text in caplog.text


@pytest.mark.parametrize("per_caller", [False, True])
@pytest.mark.parametrize("has_own_budget", [False, True])
async def test_results_of_provided_tools_are_within_their_budget(*, per_caller: bool, has_own_budget: bool) -> None:
    async def get(_context: Any, _arguments: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "One sentence. " * 1000}]}

    budget = {"result_characters": 3000} if has_own_budget else {}
    limits = Limits() if has_own_budget else Limits(result_characters=3000)
    mcp = MCPServer("shop", limits=limits, auth=APIKeys({"ada": "key-of-ada-16-chars"}))
    mcp.add_provider(Searchable(tool("get", get, tags=frozenset({"ada"}), **budget), per_caller=per_caller))
    async with Client(mcp, headers={"x-api-key": "key-of-ada-16-chars"}) as client:
        result = await client.call_tool("get")
        assert len(result.text) < 3000
        link = result["content"][-1]["uri"]
        assert (await client.read_resource(link)).text == "One sentence. " * 1000
        assert {"get", "read_result"} == {listed.name for listed in await client.list_tools()}


async def test_resources_of_a_provider_are_listed_beside_those_that_functions_list() -> None:
    mcp = shop(Features(resource("menu://today")))

    @mcp.resource_lister("notes")
    async def list_notes() -> list[ResourceInfo]:
        return [ResourceInfo("notes://1", "one")]

    async with Client(mcp) as client:
        assert [item.uri for item in await client.list_resources()] == ["menu://today", "notes://1"]


async def dropped(arguments: dict[str, Any]) -> str:
    return f"dropped {arguments['text']}"


async def test_a_tool_from_a_schema_that_asks_a_person_is_destructive() -> None:
    provider = Features(tool_from_schema("drop", dropped, SCHEMA, confirm="Drop it?"))
    async with Client(shop(provider)) as client:
        [_, listed] = await client.list_tools()
    assert listed.annotations == {"destructiveHint": True}


async def test_a_tool_from_a_schema_has_the_options_of_other_tools() -> None:
    options: dict[str, Any] = {"result_characters": 2000, "ui": "ui://page", "meta": {"com.example/a": 1}}
    made = tool_from_schema("read", lambda arguments: arguments["text"] * 5000, SCHEMA, read_only=True, **options)
    assert (made.result_characters, made.annotations) == (2000, {"readOnlyHint": True})
    assert made.describe()["_meta"]["com.example/a"] == 1
    assert made.describe()["_meta"]["ui"]["resourceUri"] == "ui://page"
    async with Client(shop(Features(made))) as client:
        assert len((await client.call_tool("read", {"text": "a"})).text) < 3000


async def test_a_cache_never_answers_for_a_tool_from_a_schema_that_asks_a_person() -> None:
    asked = []

    async def answer(question: Any) -> Any:
        asked.append(question["message"])
        return {"action": "accept", "content": {"confirm": True}}

    mcp = MCPServer("shop", middleware=[cache_results(60, ["drop"])])
    mcp.add_provider(Features(tool_from_schema("drop", dropped, SCHEMA, confirm="Drop it?")))
    async with Client(mcp, revision="2025-11-25", elicit=answer) as client:
        for _ in range(2):
            assert (await client.call_tool("drop", {"text": "a"})).text == "dropped a"
    assert asked == ["Drop it?", "Drop it?"]


async def test_few_of_many_unknown_arguments_of_a_tool_for_a_resource_are_reported() -> None:
    mcp = shop(Features(template("menu://{day}")))
    mcp.add_transform(ResourcesAsTools(mcp))
    [made] = [item for item in await mcp.list_tools() if "day" in item.input_schema.get("properties", {})]
    result = await mcp.call_tool(made.name, {"day": "x", **{f"dai{number}": 1 for number in range(5000)}})
    assert result.is_error
    assert result.text.endswith("and 980 more")


async def test_names_that_change_without_end_are_reported_within_bounds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may list other variants of a foreign name each time."""
    monkeypatch.setattr(line_limit, "MAX_SUBJECTS", 3)
    name = "transfer_money"
    provider = Features(refresh=0)
    mcp = MCPServer("bank")
    mcp.tool(name)(lambda: "done")
    mcp.add_provider(provider)
    for place in range(len(name)):
        provider.features = [tool(f"{name[:place]}{name[place:].upper()}"), object()]
        assert await names(mcp) == [name]
    assert len(caplog.records) == 3 + 1
