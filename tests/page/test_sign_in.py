"""The page signs in at an authorization server, and with a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Auth, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.local_sign_in import sign_in_locally
from funcmcp.auth import OIDC, APIKeys, OAuthProxy
from tests.clients.signing_in import SignIn, serve_sign_in
from tests.page.browser import Browser, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("A browser goes through many pages.")

UNAUTHORIZED = ["status of 401"]
KEY = "0123456789abcdefKEY"
SIGN_IN = """
    await page.goto(args.url + "#tool/create_order");
    await page.getByText("This server wants to know who you are.").waitFor();
    await page.getByLabel("Authorization server").waitFor();
    const issuer = await page.getByLabel("Authorization server").inputValue();
    const seen = [issuer, await page.getByLabel("Scopes").inputValue()];
    const submit = page.getByRole("main").getByRole("button", { name: "Sign in" });
    await submit.click();
"""


@pytest.fixture(scope="module")
def signing_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignIn]:
    with serve_sign_in(tmp_path_factory.mktemp("orders") / "orders.db") as servers:
        yield servers


@pytest.fixture
def orders(signing_in: SignIn) -> SignIn:
    signing_in.log.clear()
    return signing_in


def test_the_page_signs_in_with_pkce_steps_up_and_signs_out(browser: Browser, orders: SignIn) -> None:
    seen = browser.play(
        SIGN_IN
        + """
        await page.getByRole("button", { name: "Allow" }).click();
        await page.getByRole("heading", { name: "Create Order" }).waitFor();
        seen.push(page.url());
        await page.getByRole("link", { name: "Signed in" }).waitFor();
        const toggle = page.getByRole("button", { name: "Edit as JSON" });
        await toggle.click();
        await page.getByLabel("Arguments as JSON").fill(JSON.stringify(args.order));
        await page.getByRole("button", { name: "Call", exact: true }).click();
        await page.getByRole("heading", { name: "Failed" }).waitFor();
        seen.push(await page.locator(".result").innerText());
        await page.locator(".result").getByRole("link", { name: "Sign in" }).click();
        await page.getByLabel("Scopes").waitFor();
        seen.push(await page.getByLabel("Scopes").inputValue());
        await submit.click();
        await page.getByRole("button", { name: "Allow" }).click();
        await page.locator("nav").getByRole("link", { name: "Create Order" }).click();
        await toggle.click();
        await page.getByLabel("Arguments as JSON").fill(JSON.stringify(args.order));
        await page.getByRole("button", { name: "Call", exact: true }).click();
        await page.getByRole("heading", { name: "Done" }).waitFor();
        seen.push(await page.locator(".result").innerText());
        await page.getByText("Requests and answers as JSON").click();
        seen.push(await page.locator(".run .exchange").innerText());
        seen.push(await page.evaluate(() => [localStorage.length, document.cookie, sessionStorage.length]));
        await page.getByRole("link", { name: "Signed in" }).click();
        await page.getByRole("button", { name: "Sign out" }).click();
        await page.getByText("This server wants to know who you are.").waitFor();
        seen.push(await page.evaluate(() => sessionStorage.length));
        return seen;
        """,
        {
            "url": orders.url,
            "order": {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 1}]},
        },
        errors=[*UNAUTHORIZED, "status of 403"],
    )
    issuer, scopes, url, refusal, more, order, exchange, storage, cleared = seen
    assert (issuer, scopes, more) == (orders.issuer, "orders.read", "orders.read orders.write")
    assert url == f"{orders.url}#tool/create_order"
    assert "It needs the scopes orders.read orders.write." in refusal
    assert '"customerId": "ada"' in order
    assert '"Authorization": "…"' in exchange
    assert (storage, cleared) == ([0, "", 1], 0)
    authorize = orders.those("GET /authorize")
    assert {request.values["code_challenge_method"] for request in authorize} == {"S256"}
    assert {request.values["redirect_uri"] for request in authorize} == {orders.url}
    token = orders.those("POST /token")
    assert {request.values["resource"] for request in [*authorize, *token]} == {orders.url}
    assert len({request.values["state"] for request in authorize}) == 2
    assert [request.values["scope"] for request in authorize] == ["orders.read", "orders.read orders.write"]
    assert "token" not in exchange.lower().replace("progresstoken", "")


def test_a_refused_sign_in_and_an_answer_that_was_not_asked_for_are_errors(browser: Browser, orders: SignIn) -> None:
    seen = browser.play(
        SIGN_IN
        + """
        await page.getByRole("button", { name: "Deny" }).click();
        seen.push(await page.locator(".failure").first().innerText(), page.url());
        await page.goto(args.url + "?code=stolen&state=made-up");
        seen.push(await page.getByText("was not started in this tab").innerText(), page.url());
        return seen;
        """,
        {"url": orders.url},
        errors=UNAUTHORIZED,
    )
    assert "denied" in seen[2].lower()
    assert seen[3] == f"{orders.url}#tool/create_order"
    assert seen[5] == orders.url
    assert not orders.those("POST /token")


def test_the_page_says_who_is_signed_in(browser: Browser) -> None:
    """The user of `funcmcp run --sign-in-as` has a name."""
    upstream = OIDC("https://login.example.com", "orders")
    proxy = OAuthProxy("https://orders.example.com/mcp", upstream=upstream, scopes={"read": "See orders"})
    mcp = MCPServer("Orders", auth=Auth(proxy))
    mcp.tool(hello)
    with serving(mcp) as url:
        claims = {"sub": "ada", "name": "Åda <b>"}
        sign_in_locally(runtime_of(mcp), claims, url.removesuffix("/mcp"))
        seen = browser.play(
            """
            await page.goto(args.url);
            await page.getByLabel("Authorization server").waitFor();
            await page.getByRole("main").getByRole("button", { name: "Sign in" }).click();
            await page.getByRole("button", { name: "Allow" }).click();
            await page.getByRole("link", { name: "Signed in" }).click();
            const card = page.getByText("You are signed in");
            const seen = [await card.innerText()];
            return seen;
            """,
            {"url": url},
            errors=UNAUTHORIZED,
        )
    assert seen == [f"You are signed in as Åda <b>, with a token of {url.removesuffix('/mcp')}. Scopes: read."]


def test_an_expired_token_is_refreshed(browser: Browser, orders: SignIn) -> None:
    browser.play(
        SIGN_IN
        + """
        await page.getByRole("button", { name: "Allow" }).click();
        await page.getByRole("heading", { name: "Create Order" }).waitFor();
        await page.evaluate(() => {
            const key = Object.keys(sessionStorage)[0];
            const stored = JSON.parse(sessionStorage.getItem(key));
            sessionStorage.setItem(key, JSON.stringify({ ...stored, token: "expired" }));
        });
        await page.reload();
        await page.getByRole("heading", { name: "Create Order" }).waitFor();
        """,
        {"url": orders.url},
        errors=UNAUTHORIZED,
    )
    assert "refresh_token" in [request.values["grant_type"] for request in orders.those("POST /token")]


def test_a_key_in_a_header_signs_in(browser: Browser) -> None:
    mcp = MCPServer("keys", auth=APIKeys({"ada": KEY}))
    mcp.tool(hello)
    with serving(mcp) as url:
        seen: dict[str, Any] = browser.play(
            """
            await page.goto(args.url);
            await page.getByText("This server wants to know who you are.").waitFor();
            const seen = {
                cards: await page.locator("main h3").allInnerTexts(),
                kind: await page.getByLabel("Send it as").inputValue(),
                refusals: [],
            };
            const use = async (kind, key) => {
                await page.getByLabel("Send it as").selectOption(kind);
                await page.getByLabel("Token or key").fill(key);
                await page.getByRole("button", { name: "Use" }).click();
            };
            const refused = async (text) => {
                await page.getByRole("alert").getByText(text).waitFor();
                await page.getByRole("link", { name: "Sign in", exact: true }).waitFor();
                seen.refusals.push(await page.evaluate(() => [document.activeElement.type, sessionStorage.length]));
            };
            await use("API key in X-API-Key", "wrong");
            await refused("The server refused this key.");
            await use("Bearer token", args.key);
            await refused("The server refused this token.");
            await use("Another header", args.key);
            await page.getByRole("alert").getByText("Enter the name of a header").waitFor();
            await page.getByLabel("Header", { exact: true }).fill("X API Key");
            await page.getByRole("button", { name: "Use" }).click();
            seen.problem = await page.getByRole("alert").last().innerText();
            seen.violations = await violations(page);
            await use("API key in X-API-Key", args.key);
            await page.getByRole("link", { name: "Signed in" }).waitFor();
            await page.locator("nav").getByRole("link", { name: "Hello" }).click();
            await page.getByRole("button", { name: "Call" }).click();
            await page.getByRole("heading", { name: "Done" }).waitFor();
            seen.result = await page.locator(".result").innerText();
            await page.evaluate(() => {
                const [name] = Object.keys(sessionStorage);
                sessionStorage.setItem(name, sessionStorage.getItem(name).replace("KEY", "OLD"));
            });
            await page.reload();
            await page.getByText("The server refused this key.").waitFor();
            await page.getByRole("link", { name: "Sign in", exact: true }).waitFor();
            return seen;
            """,
            {"url": url, "key": KEY},
            errors=UNAUTHORIZED,
        )
    assert seen["cards"] == ["With a token or a key", "With an authorization server"]
    assert seen["kind"] == "X-API-Key"
    assert seen["refusals"] == [["password", 0]] * 2
    assert seen["problem"] == "Enter the name of a header and a key of visible ASCII characters."
    assert "Hello, you." in seen["result"]
    assert seen["violations"] == []


def test_stored_values_that_the_page_can_not_read_are_no_credentials(browser: Browser) -> None:
    mcp = MCPServer("Keys", auth=APIKeys({"ada": KEY}))
    mcp.tool(hello)
    bad = ["{", "1", '"text"', "[]", "{}", '{"token":1}', '{"token":""}', '{"header":"X-API-Key"}', '{"value":"x"}']
    with serving(mcp) as url:
        seen: list[str] = browser.play(
            """
            const seen = [];
            await page.goto(args.url);
            for (const value of args.bad) {
                await page.evaluate((value) => {
                    for (const kind of ["credentials", "sign-in", "tasks"]) {
                        sessionStorage.setItem(`funcmcp ${kind} ${location.pathname}`, value);
                    }
                }, value);
                await page.reload();
                await page.getByText("This server wants to know who you are.").waitFor();
                seen.push(await page.locator("#open-sign-in").innerText());
            }
            const more = JSON.stringify({ header: "X-API-Key", value: args.key, added: [1] });
            await page.evaluate(
                (value) => sessionStorage.setItem(`funcmcp credentials ${location.pathname}`, value), more);
            await page.reload();
            await page.getByRole("link", { name: "Signed in" }).waitFor();
            return seen;
            """,
            {"url": url, "key": KEY, "bad": bad},
            errors=UNAUTHORIZED,
        )
    assert seen == ["Sign in"] * len(bad)


def hello() -> str:
    """Greet."""
    return "Hello, you."
