// An OpenID provider (oidc-provider, certified by the OpenID Foundation) with one client, for the tests of the proxy.
// identity-provider.mjs CLIENT_ID CLIENT_SECRET REDIRECT_URI [ROTATES [CONFORMS [DEMANDS]]]: prints its issuer when it
// listens. As by default, with CONFORMS only userinfo has the claims of the user, and it is signed. DEMANDS is true for
// pushed authorization requests and assertions signed with the secret.
import http from 'node:http'
import Provider from 'oidc-provider'

const [clientId, clientSecret, redirectUri, rotates = 'true', conforms = 'false', demands = 'false'] =
  process.argv.slice(2)
const pushes = demands === 'true'
const server = http.createServer()
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const disabled = new Set()
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: pushes ? 'client_secret_jwt' : 'client_secret_basic',
        ...(conforms === 'true' ? { userinfo_signed_response_alg: 'RS256' } : {}),
      },
    ],
    ...(pushes ? { clientAuthMethods: ['client_secret_jwt'] } : {}),
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: true },
      revocation: { enabled: true },
      pushedAuthorizationRequests: { enabled: pushes, requirePushedAuthorizationRequests: pushes },
      jwtUserinfo: { enabled: conforms === 'true' },
    },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    conformIdTokenClaims: conforms === 'true',
    rotateRefreshToken: rotates === 'true',
    findAccount: (_context, id) =>
      disabled.has(id)
        ? undefined
        : {
            accountId: id,
            claims: () => ({
              sub: id,
              name: `${id} of the tests`,
              email: `${id}@example.com`,
              email_verified: true,
              groups: Array.from({ length: 200 }, (_, number) => `group ${number} of a company with long names`),
            }),
          },
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    // Accounts are disabled here, as an administrator would do it.
    const match = /^\/disable\/(\w+)$/.exec(request.url)
    if (match === null) {
      answer(request, response)
      return
    }
    disabled.add(match[1])
    response.end()
  })
  console.log(issuer)
})
