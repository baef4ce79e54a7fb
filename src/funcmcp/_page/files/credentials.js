// The credentials of the user: a token of an authorization server, or a header field. They are in the session storage
// of this tab, and nowhere else.

const endpoint = endpointOf(location);
const STORED = `funcmcp credentials ${endpoint}`;
const PENDING = `funcmcp sign-in ${endpoint}`;

/** Returns the URL that requests go to. It is that of the page, without the query of an authorization server. */
function endpointOf(place) {
  const query = new URLSearchParams(place.search);
  if (query.has("state") && (query.has("code") || query.has("error"))) return place.pathname;
  return place.pathname + place.search;
}

const stored = (key) => {
  try {
    return parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
};

const store = (key, value) => {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The browser forbids the storage. The credentials then last until the page is left.
  }
};

/** Returns the stored credentials; null for what another version of the page has stored in another form. */
function storedCredentials() {
  const value = stored(STORED);
  const isText = (name) => typeof value?.[name] === "string" && value[name] !== "";
  return isText("token") || (isText("header") && isText("value")) ? value : null;
}

let credentials = storedCredentials();

/** Whether a sign-in can change something: the server checks who is calling, or has refused a request without credentials. */
let hasSignIn = "signIn" in document.body.dataset;

function useCredentials(value) {
  credentials = value;
  store(STORED, value);
  showSignIn();
}

function offerSignIn() {
  hasSignIn = true;
  showSignIn();
}

function showSignIn() {
  const button = byId("open-sign-in");
  button.hidden = credentials === null && !hasSignIn;
  button.textContent = credentials === null ? "Sign in" : "Signed in";
}

/** Returns a sentence that follows where something is missing. */
const signInHint = () => (credentials === null && hasSignIn ? " You may have to sign in." : "");

/** Returns the noun for credentials in a sentence. */
const nounOf = (value) => (value.token || value.header.toLowerCase() === "authorization" ? "token" : "key");

/** Returns the header fields that carry the credentials. */
function credentialFields() {
  if (credentials === null) return {};
  if (credentials.token) return { Authorization: `Bearer ${credentials.token}` };
  return { [credentials.header]: credentials.value };
}
