// Signs in with a TypeScript SDK at some endpoints, calls a tool at each, and renews the tokens. Prints JSON for each.
// Arguments: the folder whose node_modules has the SDKs, "v1" or "v2", where the user returns, the endpoints.
import { createRequire } from 'node:module'
import { browse } from './browser.mjs'

const [packages, sdk, back, ...urls] = process.argv.slice(2)
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
  pages = 0
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
  invalidateCredentials(scope) {
    if (scope === 'all' || scope === 'client') delete this.kept.client
    if (scope === 'all' || scope === 'tokens') delete this.kept.tokens
  }
  async redirectToAuthorization(address) {
    this.pages++
    this.answer = (await browse(address, back, 'ada')).searchParams
  }
}

async function finish(transport, provider) {
  const error = provider.answer.get('error')
  if (error) throw new Error(`${error} ${provider.answer.get('error_description')}`)
  await transport.finishAuth(...(sdk === 'v2' ? [provider.answer] : [provider.answer.get('code')]))
}

async function signIn(url, provider) {
  for (let attempt = 0; ; attempt++) {
    const client = new Client({ name: 'sign-in', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
    try {
      await client.connect(transport)
      await client.callTool({ name: 'who', arguments: {} })
      await client.close()
      return
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || attempt) throw error
      await finish(transport, provider)
    }
  }
}

const seen = []
for (const url of urls) {
  const provider = new Provider()
  try {
    await signIn(url, provider)
  } catch (error) {
    seen.push({ is_signed_in: false, text: String(error.message) })
    continue
  }
  try {
    seen.push({ is_signed_in: true, again: await auth(provider, { serverUrl: url }), pages: provider.pages })
  } catch (error) {
    seen.push({ is_signed_in: true, again: String(error.message), pages: provider.pages })
  }
}
console.log(JSON.stringify(seen))
