"""The consent page in Chromium and Firefox, where the browser decides: cookies, frames, foreign forms."""

from __future__ import annotations

import html
import re
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from funcmcp import HTTPOptions, MCPServer, ServerInfo
from funcmcp._processes.server import origin_of
from funcmcp.auth import OAuthProxy
from tests.auth.issuer import certificate
from tests.clients.signing_in import serving_in_thread
from tests.oauth_proxy.stage import KEYS, SCOPES, ScriptedUpstream, challenge_of
from tests.page.browser import HOST, HOSTS, Browser, running_browser
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.requests import Request

    from funcmcp._oauth_proxy.upstream import AuthorizationRequest

pytestmark = pytest.mark.slow("Real browsers show the sign-in pages.")

REFUSED = ["status of 403"]
ICONS = [
    {"src": "data:image/svg+xml," + quote('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>')},
    {
        "src": "data:image/svg+xml," + quote('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
        "theme": "dark",
    },
]


class Login(ScriptedUpstream):
    """An identity provider with a page at another site, and pages of an attacker beside it.

    Attributes:
        origin: Its origin.
        callback: The callback of the proxy.
        attack: The HTML of the attacker's page.
    """

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin = origin
        self.callback = ""
        self.attack = ""
        self.app = Starlette(
            routes=[Route("/authorize", self.page), Route("/back", self.back), Route("/attack", self.attacking)]
        )

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        self.requests.append(request)
        self.callback = request.redirect_uri
        return f"{self.origin}/authorize?{urlencode({'state': request.state})}"

    async def page(self, request: Request) -> Response:
        return RedirectResponse(f"{self.callback}?{urlencode(self.sign_in(str(request.url)))}", 302)

    async def back(self, _request: Request) -> Response:
        return HTMLResponse("<!doctype html><title>The client</title><main>The client has the code.</main>")

    async def attacking(self, _request: Request) -> Response:
        return HTMLResponse(f"<!doctype html><title>Attack</title>{self.attack}")


@dataclass(frozen=True)
class Site:
    """A server with a proxy, and a provider at another site.

    Attributes:
        origin: The origin of the server.
        login: The provider.
        address: Where a client sends its user.
    """

    origin: str
    login: Login
    address: str


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with running_browser(request.param) as running:
        yield running


@pytest.fixture
def site(shared_site: Site) -> Site:
    """Return the shared site as if it had just started."""
    shared_site.login.requests.clear()
    shared_site.login.attack = ""
    return shared_site


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    here, there = listen(HOST, 0), listen(HOST, 0)
    origin = origin_of(HOST, here)
    # A name and an address are two sites for a browser.
    login = Login(origin_of(HOST, there).replace(HOST, "localhost"))
    proxy = OAuthProxy(f"{origin}/mcp", upstream=login, scopes=SCOPES, keys=KEYS)
    with ExitStack() as stack:
        stack.enter_context(serving_in_thread(MCPServer("Orders", auth=proxy, info=ServerInfo(icons=ICONS)), here))
        stack.enter_context(serving_in_thread(login.app, there))
        metadata = {"client_name": "Notes", "redirect_uris": [f"{login.origin}/back"]}
        client_id = httpx2.post(f"{origin}/oauth/register", json=metadata).json()["client_id"]
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": f"{login.origin}/back",
            "state": "the state",
            "scope": "orders.read orders.write",
            "code_challenge": challenge_of("v" * 43),
            "code_challenge_method": "S256",
        }
        yield Site(origin, login, f"{origin}/oauth/authorize?{urlencode(query)}")


ALLOW = """
    await page.goto(args.address);
    const heading = await page.getByRole("heading", { level: 1 }).innerText();
    const image = page.locator("img");
    const icon = [await image.getAttribute("alt")];
    // In Firefox the policy of the page blocks this. There an icon that is refused is an error in the console.
    if (page.context().browser().browserType().name() === "chromium") {
        icon.push(await image.evaluate((element) => element.decode().then(() => element.naturalWidth)));
    }
    await page.getByRole("button", { name: args.decision }).click();
    await page.waitForURL(/\\/back\\?/);
    const cookies = (await page.context().cookies()).map(({ name }) => name);
    return [heading, icon, page.url(), cookies];
"""


@pytest.mark.parametrize("scripts", [True, False])
def test_a_user_allows_it_and_no_cookie_remains(browser: Browser, site: Site, scripts: bool) -> None:
    values = {"address": site.address, "decision": "Allow"}
    heading, icon, url, cookies = browser.play(ALLOW, values, javaScriptEnabled=scripts)
    assert heading == "Allow Notes to use Orders?"
    assert icon in (["", 8], [""])
    assert url.startswith(f"{site.login.origin}/back?code=")
    assert "&state=the%20state&iss=" in url
    assert cookies == []


def test_a_user_denies_it(browser: Browser, site: Site) -> None:
    values = {"address": site.address, "decision": "Deny"}
    _, icon, url, cookies = browser.play(ALLOW, values, colorScheme="dark")
    assert icon in (["", 9], [""])
    assert url.startswith(f"{site.login.origin}/back?error=access_denied")
    assert (site.login.requests, cookies) == ([], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_pages_are_accessible(browser: Browser, site: Site, scheme: str, width: int) -> None:
    if browser.name != "chromium":
        pytest.skip("axe-core judges the document, which is the same in each browser.")
    script = """
        const seen = [];
        for (const address of args) {
            await page.goto(address);
            seen.push(await violations(page));
            seen.push(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
        }
        await page.goto(args[0]);
        await page.keyboard.press("Tab");
        seen.push(await page.evaluate(() => document.activeElement.textContent));
        return seen;
    """
    addresses = [site.address, f"{site.origin}/oauth/authorize?client_id=unknown"]
    options: dict[str, Any] = {"colorScheme": scheme, "viewport": {"width": width, "height": 700}}
    seen = browser.play(script, addresses, errors=["status of 400"], bypassCSP=True, **options)
    assert seen == [[], True, [], True, "Deny"]


def test_the_page_is_not_shown_in_a_frame_of_another_page(browser: Browser, site: Site) -> None:
    frames = [f"{site.login.origin}/back", site.address]
    site.login.attack = "".join(f'<iframe src="{html.escape(url)}"></iframe>' for url in frames)
    script = """
        await page.goto(args, { waitUntil: "commit" });
        await page.frameLocator("iframe >> nth=0").getByText("The client has the code.").waitFor();
        // Firefox shows no document of the frame that it has blocked.
        const blocked = page.frameLocator("iframe >> nth=1").locator("body");
        return await blocked.innerText({ timeout: 2000 }).catch(() => "");
    """
    text = browser.play(script, f"{site.login.origin}/attack", errors=["frame", "X-Frame-Options"])
    assert "Notes" not in text
    assert "Allow" not in text


def test_a_form_of_an_attackers_page_does_not_consent(browser: Browser, site: Site) -> None:
    """The attacker has opened the page, and sends its form in the browser of a victim that has the page open, too."""
    page = httpx2.get(site.address).text
    fields = re.findall(r'<input type="hidden" name="[^"]*" value="[^"]*">', page)
    assert len(fields) == 2
    site.login.attack = (
        f'<form method="post" action="{site.origin}/oauth/consent">{"".join(fields)}'
        '<input type="hidden" name="decision" value="allow"><button>Win a prize</button></form>'
    )
    script = """
        await page.goto(args.address);
        await page.goto(args.attack);
        await page.getByRole("button", { name: "Win a prize" }).click();
        return await page.getByRole("heading", { level: 1 }).innerText();
    """
    values = {"address": site.address, "attack": f"{site.login.origin}/attack"}
    heading = browser.play(script, values, errors=REFUSED)
    assert heading == "This was not confirmed on the page of this server"
    assert site.login.requests == []


def test_a_victim_does_not_complete_the_sign_in_of_an_attacker(browser: Browser, site: Site) -> None:
    with httpx2.Client() as attacker:
        page = attacker.get(site.address).text
        fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page))
        form = fields | {"decision": "allow"}
        answer = attacker.post(f"{site.origin}/oauth/consent", data=form, headers={"origin": site.origin})
        link = answer.headers["location"]
    script = """
        await page.goto(args.address);
        await page.goto(args.link);
        return [page.url(), await page.getByRole("heading", { level: 1 }).innerText()];
    """
    url, heading = browser.play(script, {"address": site.address, "link": link}, errors=REFUSED)
    assert url.startswith(f"{site.origin}/oauth/callback?")
    assert heading == "This sign-in was not started in this browser"


def test_another_host_of_the_domain_can_not_plant_the_cookie_of_an_attackers_sign_in(
    browser: Browser, tmp_path: Path
) -> None:
    """The attacker owns a host of the same domain, and sets the cookies of its own sign-in for the whole domain."""
    here, there = listen(HOST, 0), listen(HOST, 0)
    orders, evil = (
        f"https://{host}:{listener.getsockname()[1]}" for host, listener in zip(HOSTS, (here, there), strict=True)
    )
    login = Login(evil)
    proxy = OAuthProxy(f"{orders}/mcp", upstream=login, scopes=SCOPES, keys=KEYS)
    planted: list[str] = []

    async def plant(_request: Request) -> Response:
        response = HTMLResponse("<!doctype html><title>A page</title>A page")
        for cookie in planted:
            response.headers.append("set-cookie", cookie)
        return response

    login.app.routes.append(Route("/plant", plant))
    file = certificate(tmp_path)
    with ExitStack() as stack:
        mcp = MCPServer("Orders", auth=proxy, http=HTTPOptions(allowed_hosts=[HOSTS[0]]))
        stack.enter_context(serving_in_thread(mcp, here, file))
        stack.enter_context(serving_in_thread(login.app, there, file))
        attacker = stack.enter_context(httpx2.Client(verify=False, base_url=f"https://{HOST}:{here.getsockname()[1]}"))
        attacker.headers["host"] = urlsplit(orders).netloc
        metadata = {"client_name": "Notes", "redirect_uris": [f"{evil}/back"]}
        query = {
            "response_type": "code",
            "client_id": attacker.post("/oauth/register", json=metadata).json()["client_id"],
            "code_challenge": challenge_of("v" * 43),
            "code_challenge_method": "S256",
        }
        page = attacker.get("/oauth/authorize", params=query)
        fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page.text))
        cookie = {"cookie": page.headers["set-cookie"].partition(";")[0]}
        form = fields | {"decision": "allow"}
        answer = attacker.post("/oauth/consent", data=form, headers=cookie | {"origin": orders})
        pairs = [value.partition(";")[0] for value in answer.headers.get_list("set-cookie") if "-go-" in value]
        assert pairs
        assert all(pair.startswith("__Host-") for pair in pairs)
        for pair in [*pairs, *(pair.removeprefix("__Host-") for pair in pairs)]:
            planted += [f"{pair}; Path=/; Secure", f"{pair}; Domain=example.test; Path=/; Secure"]
        script = """
            await page.goto(args.plant);
            await page.goto(args.link);
            const names = (await page.context().cookies(args.orders)).map(({ name }) => name);
            return [names, await page.getByRole("heading", { level: 1 }).innerText()];
        """
        values = {"plant": f"{evil}/plant", "link": answer.headers["location"], "orders": orders}
        names, heading = browser.play(script, values, errors=[*REFUSED, "__Host-"], ignoreHTTPSErrors=True)
    # The browser sends the cookie without the prefix, which does not count, and refuses the other one.
    assert names == [pair.removeprefix("__Host-").partition("=")[0] for pair in pairs]
    assert heading == "This sign-in was not started in this browser"
