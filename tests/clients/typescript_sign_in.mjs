// Signs in with a TypeScript SDK, calls a tool, and then one that takes a scope more. Prints what came back as JSON.
// Arguments: the folder whose node_modules has the SDKs, "v1" or "v2", the endpoint, where the user goes back to,
// the negotiation mode (v2), and the two calls.
import { createRequire } from "node:module";

const [packages, sdk, url, back, mode, told] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = load();

function load() {
  if (sdk === "v2") return require("@modelcontextprotocol/client");
  return {
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    ...require("@modelcontextprotocol/sdk/client/auth.js"),
  };
}

// Keeps everything in memory, and takes the user's part.
class Provider {
  redirectUrl = back;
  clientMetadata = {
    client_name: `typescript ${sdk}`,
    redirect_uris: [back],
    // With a refresh token, v1 refreshes where it should step up: it gets the same scopes again and gives up.
    grant_types: sdk === "v1" ? ["authorization_code"] : ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  kept = {};
  state() {
    this.kept.state = crypto.randomUUID();
    return this.kept.state;
  }
  clientInformation() {
    return this.kept.client;
  }
  saveClientInformation(client) {
    this.kept.client = client;
  }
  tokens() {
    return this.kept.tokens;
  }
  saveTokens(tokens) {
    this.kept.tokens = tokens;
  }
  saveCodeVerifier(verifier) {
    this.kept.verifier = verifier;
  }
  codeVerifier() {
    return this.kept.verifier;
  }
  async redirectToAuthorization(address) {
    const page = await (await fetch(address)).text();
    const ticket = /name="ticket" value="([\w-]+)"/.exec(page)?.[1];
    if (!ticket) throw new Error(page);
    const answer = await fetch(new URL("consent", address), {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams({ ticket, user: "ada", decision: "allow" }),
    });
    this.answer = new URL(answer.headers.get("location")).searchParams;
    if (this.answer.get("state") !== this.kept.state) throw new Error(`state ${this.answer}`);
  }
}

// Does what needs a token, and once more when the user has come back.
async function signedIn(attempt) {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !provider.answer) throw error;
      const answer = provider.answer;
      provider.answer = undefined;
      await transport.finishAuth(...(sdk === "v2" ? [answer] : [answer.get("code")]));
    }
  }
}

const provider = new Provider();
const options = mode === "legacy" ? {} : { versionNegotiation: { mode: mode === "auto" ? mode : { pin: mode } } };
let client, transport;
await signedIn(async () => {
  await client?.close();
  client = new Client({ name: "sign-in", version: "1.0.0" }, options);
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  await client.connect(transport);
});
const results = [];
for (const call of JSON.parse(told)) results.push(await signedIn(() => client.callTool(call)));
const { tokens } = provider.kept;
await client.close();
console.log(JSON.stringify({ results, tokens }));
