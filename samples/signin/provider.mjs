// A local OpenID provider for proxy.py (npm oidc-provider). It accepts any user name and password: keep it local.
// Run it with `npm install` and `node provider.mjs` in this folder. ORDERS_PROVIDER and ORDERS_URL change the URLs.
import { createServer } from 'node:http'
import Provider from 'oidc-provider'

const issuer = process.env.ORDERS_PROVIDER ?? 'http://127.0.0.1:9001'
const orders = new URL(process.env.ORDERS_URL ?? 'http://127.0.0.1:8000/mcp')

const provider = new Provider(issuer, {
  // The registration of the orders server. It is the only client: MCP clients are registered by the orders server.
  clients: [
    {
      client_id: 'orders',
      client_secret: 'a-secret-of-the-sample-and-of-nothing-else',
      redirect_uris: [`${orders.origin}/oauth/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
  ],
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: id, email: `${id}@example.com`, email_verified: true }),
  }),
})

const { hostname, port } = new URL(issuer)
createServer(provider.callback()).listen(Number(port || 80), hostname, () => console.log(issuer))
