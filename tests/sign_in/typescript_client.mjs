// Signs in with a TypeScript SDK, calls a tool, refreshes, and calls it again. Prints the results and the tokens as JSON.
// Arguments: the folder whose node_modules has the SDKs, "v1" or "v2", the endpoint, where the user returns, the user.
import { createRequire } from 'node:module'
import { browse } from './browser.mjs'

const [packages, sdk, url, back, user] = process.argv.slice(2)
const require = createRequire(`${packages}/package.json`)
const { Client, StreamableHTTPClientTransport, UnauthorizedError, auth } = load()

function load() {
  if (sdk === 'v2') return require('@modelcontextprotocol/client')
  return {
    ...require('@modelcontextprotocol/sdk/client/index.js'),
    ...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    ...require('@modelcontextprotocol/sdk/client/auth.js'),
  }
}

class Provider {
  redirectUrl = back
  clientMetadata = {
    client_name: `typescript ${sdk}`,
    redirect_uris: [back],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  kept = {}
  state() {
    return (this.kept.state = crypto.randomUUID())
  }
  clientInformation() {
    return this.kept.client
  }
  saveClientInformation(client) {
    this.kept.client = client
  }
  tokens() {
    return this.kept.tokens
  }
  saveTokens(tokens) {
    this.kept.tokens = tokens
  }
  saveCodeVerifier(verifier) {
    this.kept.verifier = verifier
  }
  codeVerifier() {
    return this.kept.verifier
  }
  async redirectToAuthorization(address) {
    this.answer = (await browse(address, back, user)).searchParams
    if (this.answer.get('state') !== this.kept.state) throw new Error(`state ${this.answer}`)
  }
}

const provider = new Provider()
let client, transport

async function connect() {
  client = new Client({ name: 'sign-in', version: '1.0.0' })
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
  await client.connect(transport)
}

try {
  await connect()
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error
  await transport.finishAuth(...(sdk === 'v2' ? [provider.answer] : [provider.answer.get('code')]))
  await connect()
}
const first = await client.callTool({ name: 'who', arguments: {} })
const tokens = [provider.kept.tokens]
const outcome = await auth(provider, { serverUrl: url })
tokens.push(provider.kept.tokens)
const second = await client.callTool({ name: 'who', arguments: {} })
await client.close()
console.log(JSON.stringify({ results: [first.structuredContent, second.structuredContent], outcome, tokens }))
