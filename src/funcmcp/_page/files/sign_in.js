// Sign-in with an authorization server: protected resource metadata (RFC 9728), authorization server metadata (RFC 8414,
// OpenID Connect Discovery), dynamic registration (RFC 7591), the authorization code with PKCE (RFC 7636), the resource
// parameter (RFC 8707) and the issuer in the response (RFC 9207).

const REDIRECT = location.origin + location.pathname;
const MAX_ISSUERS = 100;
const MAX_HOLDER = 100;
const RESOURCE_METADATA = "/.well-known/oauth-protected-resource";

let lastChallenge = {};

async function fetchJson(url, options) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store", credentials: "omit", ...options });
  } catch {
    throw new Error(
      `${url} can't be reached from this page. Its server has to allow requests from other origins (CORS), and its ` +
        "origin has to be that of a configured authorization server.",
    );
  }
  const document = await response.json().catch(() => null);
  if (!isObject(document)) throw new Error(`${url} answers with HTTP status ${response.status} and no JSON object.`);
  if (!response.ok) {
    const reason = get(document, "error_description") ?? get(document, "error") ?? `HTTP status ${response.status}`;
    throw new Error(`${url}: ${asText(reason)}`);
  }
  return document;
}

async function firstOf(urls) {
  let failure;
  for (const url of new Set(urls)) {
    try {
      return await fetchJson(url);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

/** Returns the metadata of this endpoint as a protected resource. */
async function resourceMetadata() {
  const path = location.pathname === "/" ? "" : location.pathname;
  const urls = [RESOURCE_METADATA + path, RESOURCE_METADATA];
  const named = lastChallenge.resource_metadata;
  if (named) {
    const url = new URL(named, location.origin);
    if (url.origin !== location.origin) {
      throw new Error(`The server's public address is at ${url.origin}. Open this page there to sign in.`);
    }
    urls.unshift(url.href);
  }
  const document = await firstOf(urls);
  const resource = new URL(asText(get(document, "resource")));
  if (resource.origin !== location.origin || !`${location.pathname}/`.startsWith(resource.pathname.replace(/\/?$/, "/"))) {
    throw new Error(`The server's public address is ${resource.href}. Open this page there to sign in.`);
  }
  return document;
}

/** Returns the metadata of an authorization server. */
async function issuerMetadata(issuer) {
  const url = new URL(issuer);
  const path = url.pathname.replace(/\/$/, "");
  const document = await firstOf([
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}/.well-known/openid-configuration${path}`,
    `${url.origin}${path}/.well-known/openid-configuration`,
  ]);
  if (get(document, "issuer") !== issuer) throw new Error(`The metadata of ${issuer} are those of another issuer.`);
  if (!listOf(get(document, "code_challenge_methods_supported")).includes("S256")) {
    throw new Error(`${issuer} does not support PKCE with S256.`);
  }
  for (const name of ["authorization_endpoint", "token_endpoint"]) checkSecure(get(document, name), name);
  return document;
}

function checkSecure(url, name) {
  const { protocol, hostname } = new URL(asText(url));
  const isLoopback = ["127.0.0.1", "localhost", "[::1]"].includes(hostname);
  if (protocol !== "https:" && !(protocol === "http:" && isLoopback)) throw new Error(`${name} is not an HTTPS URL.`);
}

async function registeredClient(metadata) {
  const registration = get(metadata, "registration_endpoint");
  if (registration === undefined) {
    throw new Error("The authorization server does not register clients by itself. Enter a client ID.");
  }
  checkSecure(registration, "registration_endpoint");
  const client = await fetchJson(registration, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      client_name: `${document.title} (page)`,
      redirect_uris: [REDIRECT],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    }),
  });
  return asText(get(client, "client_id"));
}

/** Leaves the page for the authorization server, which returns to it. */
async function beginSignIn({ resource, issuer, clientId, scope }) {
  if (!crypto.subtle) throw new Error("Browsers allow a sign-in on HTTPS pages and on 127.0.0.1 and localhost only.");
  const metadata = await issuerMetadata(issuer);
  const earlierClient = get(credentials, "issuer") === issuer ? credentials.client : null;
  const client = clientId || earlierClient || (await registeredClient(metadata));
  const verifier = randomText();
  const state = randomText();
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  store(PENDING, {
    state, verifier, issuer, client, resource, scope, tokenEndpoint: metadata.token_endpoint, place: returnPlace(),
    search: location.search, sendsIssuer: get(metadata, "authorization_response_iss_parameter_supported") === true,
  });
  const target = new URL(metadata.authorization_endpoint);
  const query = { response_type: "code", client_id: client, redirect_uri: REDIRECT, state, resource,
    code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256" };
  if (scope) query.scope = scope;
  for (const [name, value] of Object.entries(query)) target.searchParams.set(name, value);
  location.assign(target);
}

const returnPlace = () => (location.hash === "#sign-in" ? "" : location.hash);
const base64url = (bytes) => base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** Completes a sign-in if the URL is the answer of an authorization server. Throws an error if it failed. */
async function completeSignIn() {
  const query = new URLSearchParams(location.search);
  if (!query.has("state") || !(query.has("code") || query.has("error"))) return;
  const pending = stored(PENDING);
  store(PENDING, null);
  history.replaceState(null, "", location.pathname + (get(pending, "search") ?? "") + (get(pending, "place") ?? ""));
  if (pending === null || query.get("state") !== pending.state) {
    throw new Error("This sign-in was not started in this tab. Sign in again.");
  }
  const issuer = query.get("iss");
  if (issuer === null ? pending.sendsIssuer : issuer !== pending.issuer) {
    throw new Error("The answer came from another authorization server. Sign in again.");
  }
  if (query.has("error")) throw new Error(query.get("error_description") ?? query.get("error"));
  await requestToken(pending, {
    grant_type: "authorization_code", code: query.get("code"), redirect_uri: REDIRECT, code_verifier: pending.verifier,
  });
}

async function requestToken(signIn, grant) {
  const answer = await fetchJson(signIn.tokenEndpoint, {
    method: "POST",
    body: new URLSearchParams({ ...grant, client_id: signIn.client, resource: signIn.resource }),
  });
  if (asText(get(answer, "token_type")).toLowerCase() !== "bearer" || !get(answer, "access_token")) {
    throw new Error("The authorization server did not return a bearer token.");
  }
  useCredentials({
    token: answer.access_token,
    refreshToken: get(answer, "refresh_token") ?? grant.refresh_token ?? null,
    scope: get(answer, "scope") ?? signIn.scope,
    issuer: signIn.issuer, client: signIn.client, resource: signIn.resource, tokenEndpoint: signIn.tokenEndpoint,
  });
}

/** Gets a new token for an expired one; returns whether there is one. */
async function refreshToken() {
  const refresh = credentials?.refreshToken;
  if (!refresh) return false;
  const signIn = credentials;
  try {
    await requestToken(signIn, { grant_type: "refresh_token", refresh_token: refresh });
    return true;
  } catch {
    useCredentials(null);
    return false;
  }
}

// The view

function signInView(message) {
  const view = element("div", {}, heading("Sign in"));
  if (message) view.append(failure(message));
  if (credentials !== null) view.append(signedInCard());
  const hasIssuer = Boolean(lastChallenge.resource_metadata || get(credentials, "issuer"));
  view.append(...(hasIssuer ? [oauthCard(), headerCard(BEARER)] : [headerCard(API_KEY), oauthCard()]));
  return view;
}

/** Returns a sentence if the server refused the credentials, which the page then forgets; null otherwise. */
function refusalOf(error) {
  if (error.status !== 401 || credentials === null) return null;
  const sentence = `The server refused this ${nounOf(credentials)}.`;
  useCredentials(null);
  return sentence;
}

/** Returns the name in a token that is a JWT, or else its subject, for people; "" for another token. */
function holderOf(token) {
  try {
    const payload = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    const claims = parse(new TextDecoder().decode(Uint8Array.from(payload, (character) => character.charCodeAt(0))));
    const holder = [get(claims, "name"), get(claims, "sub")].find((claim) => typeof claim === "string" && claim !== "");
    return brief(holder ?? "", MAX_HOLDER);
  } catch {
    return "";
  }
}

function signedInCard() {
  const holder = credentials.token ? holderOf(credentials.token) : "";
  const kind = credentials.token ? `with a token of ${credentials.issuer}` : `with the header ${credentials.header}`;
  const scopes = credentials.scope ? ` Scopes: ${credentials.scope}.` : "";
  const button = element("button", { type: "button", click: () => { useCredentials(null); location.reload(); } }, "Sign out");
  return element("section", { class: "card" }, element("p", {}, `You are signed in ${holder && `as ${holder}, `}${kind}.${scopes}`), button);
}

function oauthCard() {
  const card = element("section", { class: "card" }, element("h3", {}, "With an authorization server"));
  const body = element("div", { class: "stack" });
  const find = async () => {
    body.replaceChildren(element("p", {}, "Looking for the authorization server…"));
    try {
      body.replaceChildren(issuerForm(await resourceMetadata()));
    } catch (error) {
      body.replaceChildren(failure(error.message));
    }
  };
  if (lastChallenge.resource_metadata) find();
  else body.append(
    element("p", {}, "You sign in there and return to this page. The page gets a token for this server."),
    element("button", { type: "button", click: find }, "Find the authorization server"),
  );
  card.append(body);
  return card;
}

function issuerForm(metadata) {
  const issuers = listOf(get(metadata, "authorization_servers")).filter((issuer) => typeof issuer === "string").slice(0, MAX_ISSUERS);
  const scopes = new Set(asText(lastChallenge.scope || get(credentials, "scope")).split(" ").filter(Boolean));
  if (lastChallenge.error === "insufficient_scope") {
    for (const scope of asText(get(credentials, "scope")).split(" ").filter(Boolean)) scopes.add(scope);
  }
  const scopeText = [...scopes].join(" ") || listOf(get(metadata, "scopes_supported")).map(asText).join(" ");
  const ids = { issuer: newId("issuer"), client: newId("client"), scope: newId("scope") };
  const issuer = element("select", { id: ids.issuer }, issuers.map((url) => element("option", { value: url }, url)));
  const client = element("input", { id: ids.client, autocomplete: "off", spellcheck: "false" });
  const scope = element("input", { id: ids.scope, value: scopeText, autocomplete: "off", spellcheck: "false" });
  const problem = element("div", { role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    problem.replaceChildren();
    try {
      await beginSignIn({
        resource: metadata.resource, issuer: issuer.value, clientId: client.value.trim(), scope: scope.value.trim(),
      });
    } catch (error) {
      problem.replaceChildren(failure(error.message));
    }
  };
  return element("form", { submit, novalidate: true },
    plainField("Authorization server", issuer),
    plainField("Client ID", client, "Leave it empty if the authorization server registers clients by itself."),
    plainField("Scopes", scope, "Separated by spaces."),
    element("p", { class: "buttons" }, element("button", { class: "primary" }, "Sign in")),
    problem,
  );
}

function plainField(label, control, help) {
  if (help) control.setAttribute("aria-describedby", `${control.id}-help`);
  return element("div", { class: "field" },
    element("label", { for: control.id }, label),
    help && element("p", { class: "help", id: `${control.id}-help` }, help),
    control,
  );
}

const BEARER = "Authorization";
const API_KEY = "X-API-Key";
const OTHER_HEADER = "";
const HEADERS = [
  [BEARER, "Bearer token"],
  [API_KEY, `API key in ${API_KEY}`],
  ["x-functions-key", "Azure Functions key in x-functions-key"],
  [OTHER_HEADER, "Another header"],
];

/** Returns the form for a token or a key. preferred is the header that is chosen first. */
function headerCard(preferred) {
  const kind = element("select", { id: newId("kind") },
    HEADERS.map(([value, label]) => element("option", { value, selected: value === preferred }, label)));
  const header = element("input", { id: newId("header"), autocomplete: "off", spellcheck: "false" });
  const headerField = plainField("Header", header);
  const showHeader = () => (headerField.hidden = kind.value !== OTHER_HEADER);
  kind.addEventListener("change", showHeader);
  showHeader();
  const secret = element("input", { id: newId("secret"), type: "password", autocomplete: "off" });
  const use = element("button", { class: "primary" }, "Use");
  const problem = element("div", { role: "alert", class: "stack" });
  const submit = async (event) => {
    event.preventDefault();
    if (use.disabled) return;
    const candidate = headerCredentials(kind.value || header.value.trim(), secret.value.trim());
    if (candidate === null) {
      problem.replaceChildren(failure("Enter the name of a header and a key of visible ASCII characters."));
      return;
    }
    use.disabled = true;
    const isAccepted = await tryCredentials(candidate);
    use.disabled = false;
    if (isAccepted) {
      useCredentials(candidate);
      location.hash = "";
      start();
      return;
    }
    const noun = nounOf(candidate);
    const advice = noun === "token" ? "If it is a key, choose its header above." : "If it is a token, choose Bearer token above.";
    problem.replaceChildren(failure(`The server refused this ${noun}.`), element("p", { class: "quiet" }, advice));
    secret.focus();
  };
  return element("section", { class: "card" },
    element("h3", {}, "With a token or a key"),
    element("form", { submit, novalidate: true },
      plainField("Send it as", kind),
      headerField,
      plainField("Token or key", secret, "It stays in this tab until you close it."),
      element("p", { class: "buttons" }, use),
      problem,
    ),
  );
}

/** Returns the credentials with a value in a header; null if the header can't contain it. */
function headerCredentials(header, text) {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header) || !/^[!-~]([ -~]*[!-~])?$/.test(text)) return null;
  const isBearer = header.toLowerCase() === "authorization" && !text.includes(" ");
  return { header, value: isBearer ? `Bearer ${text}` : text };
}

/** Returns whether the server accepts credentials: false, if it refuses a request because of them. */
async function tryCredentials(candidate) {
  const earlier = credentials;
  credentials = candidate;
  try {
    await request("server/discover");
  } catch (error) {
    // The page shows other errors when it loads.
    if (error.status === 401 || (error.status === 400 && error.challenge?.error)) return false;
  } finally {
    credentials = earlier;
    showSignIn();
  }
  return true;
}
