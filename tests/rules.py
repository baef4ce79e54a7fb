"""The rules that tests verify. Each rule has its text and its sources here, and tests refer to it by name.

`@rules.verifies(rules.H16)` marks a test that fails if the server breaks rule H16. `tests/architecture/test_rules.py`
checks that each rule has such a test.

Letters group the rules by subject: H for methods and statuses of HTTP, D for headers, J for JSON-RPC, V for versions,
T for tools, R for resources, P for prompts, C for completion, G for pagination, K for caching, A for changes of lists,
M for multi round-trip requests, S for subscriptions, X for cancellation, PR for progress, LG for logging, TR for
tracing, U for authorization. A trap is a rule that some clients or servers are known to break. A threat is a row of
docs/guides/security.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SPECIFICATION = "https://modelcontextprotocol.io/specification"
HTTP = f"{SPECIFICATION}/2025-11-25/basic/transports#streamable-http"
HTTP_2026 = f"{SPECIFICATION}/2026-07-28/basic/transports/streamable-http"
LIFECYCLE = f"{SPECIFICATION}/2025-11-25/basic/lifecycle"
VERSIONING_2026 = f"{SPECIFICATION}/2026-07-28/basic/versioning"
BASIC = f"{SPECIFICATION}/2025-11-25/basic"
BASIC_2026 = f"{SPECIFICATION}/2026-07-28/basic"
SCHEMA_2026 = f"{SPECIFICATION}/2026-07-28/schema"
TOOLS = f"{SPECIFICATION}/2025-11-25/server/tools"
TOOLS_2026 = f"{SPECIFICATION}/2026-07-28/server/tools"
RESOURCES = f"{SPECIFICATION}/2025-11-25/server/resources"
RESOURCES_2026 = f"{SPECIFICATION}/2026-07-28/server/resources"
PROMPTS = f"{SPECIFICATION}/2025-11-25/server/prompts"
COMPLETION = f"{SPECIFICATION}/2025-11-25/server/utilities/completion"
PAGINATION = f"{SPECIFICATION}/2025-11-25/server/utilities/pagination"
CACHING_2026 = f"{SPECIFICATION}/2026-07-28/server/utilities/caching"
LOGGING = f"{SPECIFICATION}/2025-11-25/server/utilities/logging"
LOGGING_2026 = f"{SPECIFICATION}/2026-07-28/server/utilities/logging"
ROUNDS_2026 = f"{SPECIFICATION}/2026-07-28/basic/patterns/mrtr"
SUBSCRIPTIONS_2026 = f"{SPECIFICATION}/2026-07-28/basic/patterns/subscriptions"
CANCELLATION = f"{SPECIFICATION}/2025-11-25/basic/utilities/cancellation"
CANCELLATION_2026 = f"{SPECIFICATION}/2026-07-28/basic/patterns/cancellation"
PROGRESS = f"{SPECIFICATION}/2025-11-25/basic/utilities/progress"
AUTHORIZATION = f"{SPECIFICATION}/2025-11-25/basic/authorization"
AUTHORIZATION_2026 = f"{SPECIFICATION}/2026-07-28/basic/authorization"
SECURITY = f"{SPECIFICATION}/2025-11-25/basic/security_best_practices"
JSON_RPC = "https://www.jsonrpc.org/specification"
RFC = "https://www.rfc-editor.org/rfc"
APPS_EXTENSION = "https://github.com/modelcontextprotocol/ext-apps"
TRACING = "https://modelcontextprotocol.io/seps/414-request-meta"
CONFORMANCE = "https://github.com/modelcontextprotocol/conformance"
PYTHON_SDK = "https://github.com/modelcontextprotocol/python-sdk"
TYPESCRIPT_SDK = "https://github.com/modelcontextprotocol/typescript-sdk"
THREATS = "docs/guides/security.md#threats"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that tests verify.

    Attributes:
        text: The rule, in one or more sentences.
        sources: URLs or documents of the project that state the rule or the behaviour behind it.
    """

    text: str
    sources: tuple[str, ...]

    def __init__(self, text: str, *sources: str) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "sources", sources)


def verifies(*_: Rule) -> Callable[[T], T]:
    """Mark a test function or a class of tests with the rules that it verifies."""
    return lambda test: test


# Methods, paths and statuses of HTTP

H1 = Rule("The server has one endpoint path. It supports POST, and GET in the handshake era.", HTTP, HTTP_2026)
H2 = Rule("GET is answered by an event stream or by 405. In 2026-07-28 it is 405.", HTTP, HTTP_2026)
H3 = Rule("DELETE may end the session with a 2xx status, or is 405. In 2026-07-28 it is 405.", HTTP, HTTP_2026)
H4 = Rule(
    "Any other method is 405 with an Allow header. Method names are case-sensitive.", f"{RFC}/rfc9110#section-15.5.6"
)
H5 = Rule("A request is answered by one JSON object or by an event stream.", HTTP, HTTP_2026)
H6 = Rule(
    "An accepted notification is 202 without a body, and so is an accepted response in the handshake era. In "
    "2026-07-28 a client does not send responses: they are 400.",
    HTTP,
    HTTP_2026,
)
H7 = Rule(
    "A notification or a response that the server does not accept is an HTTP error. Its body may be a JSON-RPC error "
    "without id.",
    HTTP,
    HTTP_2026,
)
H8 = Rule(
    "An Origin that is present and not allowed is 403. The body may be a JSON-RPC error without id.", HTTP, HTTP_2026
)
H9 = Rule("A local server listens on 127.0.0.1 only.", HTTP, HTTP_2026)
H10 = Rule("A body that is not JSON is -32700, one that is not JSON-RPC is -32600. Both are 400.", JSON_RPC, HTTP_2026)
H11 = Rule(
    "An unknown method is -32601. The status is 200 in the handshake era, where the specification leaves it open, and "
    "404 in 2026-07-28.",
    HTTP,
    HTTP_2026,
)
H12 = Rule("In 2026-07-28 a request whose `_meta` lacks a required key is 400 with -32602.", BASIC_2026, HTTP_2026)
H13 = Rule(
    "In 2026-07-28 a header that is missing, malformed or different from the body is 400 with -32020.", HTTP_2026
)
H14 = Rule(
    "A protocol version that the server does not support is 400. In 2026-07-28 the error is -32022 with `supported` "
    "and `requested`.",
    HTTP,
    VERSIONING_2026,
)
H15 = Rule(
    "In 2026-07-28 a request that needs a capability which the client did not declare is 400 with -32021 and "
    "`requiredCapabilities`.",
    BASIC_2026,
    SCHEMA_2026,
)
H16 = Rule(
    "Other errors have status 200 in the handshake era. In 2026-07-28, which leaves the status open, -32602 is 400 "
    "and -32603 is 200.",
    HTTP_2026,
    PYTHON_SDK,
)
H17 = Rule(
    "In 2026-07-28 a stream has `X-Accel-Buffering: no`, carries no requests, and ends with the response.",
    HTTP_2026,
)
H18 = Rule(
    "In the handshake era a closed connection does not cancel a request. In 2026-07-28 it does, and nothing more is "
    "sent for the request.",
    HTTP,
    HTTP_2026,
)

# Headers

D1 = Rule(
    "The server accepts a request without Accept and one with `*/*`. It responds with 406 only if Accept excludes "
    "both JSON and event streams, and never sends a stream to a client that does not accept one.",
    HTTP,
    HTTP_2026,
)
D2 = Rule("Content-Type is `application/json`, with or without parameters. The text is UTF-8.", HTTP, HTTP_2026)
D3 = Rule(
    "In the handshake era a missing MCP-Protocol-Version means the session's version, or 2025-03-26 without a "
    "session. An invalid one is 400. In 2026-07-28 it is required on every POST and equals the version in `_meta`, "
    "else the request is 400 with -32020.",
    f"{SPECIFICATION}/2025-11-25/basic/transports#protocol-version-header",
    HTTP_2026,
)
D4 = Rule(
    "A session id is visible ASCII, unguessable, and sent with the result of `initialize` only. A required id that is "
    "missing is 400, an unknown or ended one 404. 2026-07-28 ignores the header and never sends it.",
    HTTP,
    HTTP_2026,
)
D5 = Rule("Last-Event-ID may resume a stream of the same session by GET. 2026-07-28 ignores it.", HTTP, HTTP_2026)
D6 = Rule(
    "In 2026-07-28 Mcp-Method is required and equals the method in the body. Its value is case-sensitive.", HTTP_2026
)
D7 = Rule(
    "In 2026-07-28 Mcp-Name is required for tools/call, prompts/get and resources/read, and equals the name or URI in "
    "the body after base64 decoding of `=?base64?...?=`.",
    HTTP_2026,
)
D8 = Rule(
    "In 2026-07-28 an argument with `x-mcp-header` is repeated in its `Mcp-Param-` header. A header that is missing, "
    "different or badly encoded is 400 with -32020. An absent or null argument has no header.",
    HTTP_2026,
    TOOLS_2026,
)
D9 = Rule("Host and Origin are checked against DNS rebinding. The server's own address passes.", HTTP, CONFORMANCE)
D10 = Rule(
    "White space around a header's value does not belong to the value.", f"{RFC}/rfc9110#section-5.5", CONFORMANCE
)
D11 = Rule("A routing header that occurs twice is refused.", PYTHON_SDK)

# JSON-RPC

J1 = Rule(
    '`jsonrpc` is "2.0". An id is a string or an integer, never null, and the response has the same id.',
    BASIC,
    BASIC_2026,
)
J2 = Rule("An error response to a request without a readable id has no `id`, not a null one.", BASIC, BASIC_2026)
J3 = Rule(
    "In 2025-03-26 the body may be a batch of requests and notifications or of responses, without `initialize`. In "
    "all other revisions an array is 400 with -32600.",
    f"{SPECIFICATION}/2025-03-26/basic#batching",
    f"{SPECIFICATION}/2025-06-18/changelog",
)
J4 = Rule("A notification has no id. It is never answered, not even an unknown one.", BASIC, BASIC_2026)
J5 = Rule(
    "Error codes are those of the revision. 2026-07-28 adds -32020, -32021 and -32022, and has neither -32002 nor "
    "-32042.",
    BASIC,
    f"{BASIC_2026}#error-codes",
)
J6 = Rule(
    "A result is an object. In 2026-07-28 it has `resultType`, and the server's name and version in `_meta`.",
    BASIC,
    BASIC_2026,
)
J7 = Rule("Names in `_meta` follow the grammar of prefixes. Prefixes of MCP are reserved.", BASIC, BASIC_2026)

# Versions and lifecycle

V1 = Rule(
    "`initialize` is first and returns the protocol version, the capabilities and the server's name and version.",
    LIFECYCLE,
)
V2 = Rule(
    "A supported version is echoed by `initialize`. For any other one the server returns one that it supports.",
    LIFECYCLE,
)
V3 = Rule("`notifications/initialized` is 202. Requests that arrive before it are answered.", LIFECYCLE)
V4 = Rule("The server respects the negotiated version and the client's capabilities.", LIFECYCLE)
V5 = Rule("The result of `ping` is empty.", f"{SPECIFICATION}/2025-11-25/basic/utilities/ping")
V6 = Rule(
    "In 2026-07-28 there is no handshake. Each request has its version and capabilities in `_meta`, and the server "
    "infers nothing from earlier requests. `clientInfo` is not required.",
    BASIC_2026,
    VERSIONING_2026,
)
V7 = Rule(
    "`server/discover` returns the supported versions, the capabilities and instructions.", VERSIONING_2026, SCHEMA_2026
)
V8 = Rule(
    "Methods that 2026-07-28 removed are 404 with -32601 there: initialize, ping, logging/setLevel, "
    "resources/subscribe.",
    VERSIONING_2026,
)
V9 = Rule(
    "A method whose capability is not declared is -32601. A declared capability's list method is answered. A server "
    "without resources or prompts, whose author has not switched them off, lists none and finds none: clients need it, "
    "and both reference implementations do it.",
    LIFECYCLE,
    VERSIONING_2026,
)
V10 = Rule(
    "One endpoint serves both eras. `_meta` with a protocol version selects 2026-07-28, `initialize` a session of the "
    "handshake era.",
    VERSIONING_2026,
)
V11 = Rule("A server without the handshake era names its versions in the error of `initialize`.", VERSIONING_2026)

# Tools, resources, prompts, completion, lists

T2 = Rule("A list has the same order each time, and is the same on each connection.", TOOLS_2026)
R1 = Rule(
    "The resources capability is declared. Resources are listed and read, templates are listed. Contents have a URI "
    "and a text or a blob.",
    RESOURCES,
    RESOURCES_2026,
)
R2 = Rule(
    "A resource that does not exist is -32002 in the handshake era, and -32602 with `uri` in 2026-07-28. It is never "
    "empty contents.",
    RESOURCES,
    RESOURCES_2026,
)
R3 = Rule(
    "URIs and template values are validated, path traversal is refused, and binary data is base64.",
    RESOURCES,
    RESOURCES_2026,
)
R4 = Rule(
    "`resources/subscribe` and `unsubscribe` return an empty result. Only subscribed resources are notified of.",
    RESOURCES,
)
P1 = Rule("An unknown prompt, or a missing required argument, is -32602.", PROMPTS)
C1 = Rule("A completion has at most 100 values. An invalid reference is -32602.", COMPLETION)
G1 = Rule(
    "Cursors are opaque texts. An absent `nextCursor` is the end of the list. An invalid cursor is -32602.", PAGINATION
)
K1 = Rule(
    "In 2026-07-28 lists, read resources and `server/discover` have `ttlMs` and `cacheScope`. What differs for each "
    "caller is private.",
    CACHING_2026,
)
A1 = Rule("A change of a list is notified only where `listChanged` is declared.", TOOLS, RESOURCES, PROMPTS)

# Multi round-trip requests, subscriptions, cancellation, progress, logging, tracing

M1 = Rule(
    "Only tools/call, prompts/get and resources/read return `input_required`, with input requests, a request state, "
    "or both.",
    ROUNDS_2026,
)
M2 = Rule("An input request needs a capability that the client declared.", ROUNDS_2026)
M3 = Rule("A request state that the server did not make for this request is refused.", ROUNDS_2026)
M4 = Rule(
    "Missing responses are requested again, unknown ones are ignored, and malformed ones never complete a request.",
    ROUNDS_2026,
)
S1 = Rule(
    "`subscriptions/listen` opens a stream. Its first message acknowledges the subset that the server honours, and "
    "each message has the subscription's id.",
    SUBSCRIPTIONS_2026,
)
S2 = Rule("Progress and log messages of requests are never sent on a subscription's stream.", SUBSCRIPTIONS_2026)
X1 = Rule(
    "`notifications/cancelled` stops the request with its id, without a response. Unknown ids are ignored. In "
    "2026-07-28 the client closes the response's stream instead.",
    CANCELLATION,
    CANCELLATION_2026,
)
PR1 = Rule(
    "Progress is sent only for a `progressToken`, with the same token and increasing values, and stops with the "
    "response.",
    PROGRESS,
)
LG1 = Rule(
    "`logging/setLevel` returns an empty result, and -32602 for an unknown level. In 2026-07-28 the level is in the "
    "request's `_meta`, and log messages go to its own stream.",
    LOGGING,
    LOGGING_2026,
)
TR1 = Rule("`traceparent`, `tracestate` and `baggage` in `_meta` are reserved for W3C trace context.", TRACING)
APPS = Rule("A tool may name a `ui://` resource of type `text/html;profile=mcp-app` in `_meta.ui`.", APPS_EXTENSION)

# Authorization

U1 = Rule(
    "The metadata of the protected resource has at least one authorization server.", AUTHORIZATION, f"{RFC}/rfc9728"
)
U2 = Rule(
    "A 401 has the absolute URL of the metadata, which is served at the root and at the endpoint's path.", AUTHORIZATION
)
U3 = Rule(
    "A missing, invalid or expired token is 401, too few scopes are 403, and malformed credentials are 400.",
    AUTHORIZATION,
)
U4 = Rule("A 403 names in its challenge all scopes that the request needs.", AUTHORIZATION_2026)
U5 = Rule(
    "A token is for this server, is never passed on, and is not accepted in the query string.", AUTHORIZATION, SECURITY
)
U6 = Rule("Each request is verified. A session is no credential, and is bound to its user.", AUTHORIZATION, SECURITY)
U7 = Rule(
    "Where only some tools allow anonymous callers, each message is decided before any of them runs.", AUTHORIZATION
)

# Traps

TRAP_2 = Rule(
    "-32002 is an error of the handshake era only. 2026-07-28 uses -32602.", RESOURCES_2026, f"{BASIC_2026}#error-codes"
)
TRAP_4 = Rule(
    "A JSON-RPC error of the handshake era has status 200: the TypeScript client drops the body of any other, and "
    "takes 404 for the end of its session. An unknown method of 2026-07-28 is 404.",
    TYPESCRIPT_SDK,
    HTTP_2026,
)
TRAP_5 = Rule(
    "Only the result of `initialize` has Mcp-Session-Id: a client adopts the id from any response.", TYPESCRIPT_SDK
)
TRAP_6 = Rule(
    "A request with the id null, 1.5 or true is 400. An error response never has `id: null`.", PYTHON_SDK, SCHEMA_2026
)
TRAP_7 = Rule("`Accept: */*` is accepted, and never answered by an event stream.", HTTP, PYTHON_SDK)
TRAP_8 = Rule(
    "A session of 2025-03-26 accepts batches, and no other one does.",
    f"{SPECIFICATION}/2025-03-26/basic#batching",
    PYTHON_SDK,
)
TRAP_14 = Rule(
    "Wrong arguments are a result with `isError`, which the model can learn from. An unknown tool is -32602.",
    f"{TOOLS}#error-handling",
    "https://modelcontextprotocol.io/seps/1303-input-validation-errors-as-tool-execution-errors",
)
TRAP_15 = Rule(
    "Empty results are exactly `{}` in the handshake era, and have `resultType` in 2026-07-28.", CONFORMANCE, BASIC_2026
)
TRAP_16 = Rule(
    "Every list, resources/read and `server/discover` have the caching fields, empty lists too.",
    CONFORMANCE,
    CACHING_2026,
)
TRAP_17 = Rule(
    "Requests of 2026-07-28 never reach the code of the handshake era, and their Mcp-Session-Id is ignored.",
    VERSIONING_2026,
)
TRAP_18 = Rule(
    "`clientInfo` is not required. `serverInfo` is in `_meta` and not in the result of `server/discover`.", SCHEMA_2026
)
TRAP_19 = Rule(
    "`requiredCapabilities` of -32021 is an object of objects, and the error is sent before any side effect.",
    SCHEMA_2026,
)
TRAP_20 = Rule(
    "Mcp-Name is stripped of white space and decoded strictly before it is compared.", HTTP_2026, CONFORMANCE
)
TRAP_21 = Rule("A JSON response is one line: the conformance suite reads responses line by line.", CONFORMANCE)
TRAP_22 = Rule(
    "Tools are listed in the order of registration: the conformance suite calls the first one without arguments.",
    CONFORMANCE,
)
TRAP_23 = Rule("A tool with an invalid `x-mcp-header` is refused at registration: clients drop it.", TOOLS_2026)

# Threats: the number is the row's in docs/guides/security.md

THREAT_1 = Rule("DNS rebinding: a foreign Origin is 403, and a foreign Host is 421.", THREATS)
THREAT_2 = Rule("Cross-site request forgery: nothing that a page can send without a preflight is accepted.", THREATS)
THREAT_3 = Rule("Stolen sessions: a session is no credential, and every request is checked.", THREATS)
THREAT_6 = Rule("Stolen streams: events reach only the session that they are for.", THREATS)
THREAT_7 = Rule("Forged request states: a state is sealed and bound to its request, caller and time.", THREATS)
THREAT_8 = Rule("Swapped answers: requests share no state, and ids need not be unique.", THREATS)
THREAT_10 = Rule("Token passthrough: a caller's token is never sent on.", THREATS)
THREAT_11 = Rule("Tokens for other servers: `aud` names this server.", THREATS)
THREAT_12 = Rule("Tokens of other issuers: `iss` is exactly one of the configured issuers.", THREATS)
THREAT_13 = Rule("Algorithm confusion: the configuration chooses the algorithms, never the token.", THREATS)
THREAT_14 = Rule("Expired tokens: `exp` is required, and clocks may differ by little.", THREATS)
THREAT_15 = Rule("Tokens for other purposes: only access tokens are accepted.", THREATS)
THREAT_17 = Rule("Credentials that make the check fail: every failure is a refusal.", THREATS)
THREAT_18 = Rule("Misleading challenges: a challenge is made from configuration, and names what is missing.", THREATS)
THREAT_20 = Rule("Forged headers of the platform: they count only behind the platform.", THREATS)
THREAT_21 = Rule("Errors with internals: the client gets a fixed sentence and an error id.", THREATS)
THREAT_22 = Rule("Large bodies: bytes and messages are counted and limited.", THREATS)
THREAT_23 = Rule("Deep nesting and countless values: both are limited at parsing.", THREATS)
THREAT_24 = Rule("Ambiguous JSON: nothing but RFC 8259 is accepted, and names are unique.", THREATS, f"{RFC}/rfc8259")
THREAT_25 = Rule("Names in another spelling: only exact names count.", THREATS)
THREAT_26 = Rule("Slow requests: a request arrives in a limited time.", THREATS)
THREAT_27 = Rule("Streams and slow readers: their number and their unread bytes are limited.", THREATS)
THREAT_28 = Rule("Slow expressions and schemas: matching takes linear time, or works on limited input.", THREATS)
THREAT_29 = Rule("Path traversal: values of templates are checked.", THREATS)
THREAT_32 = Rule("Header injection: no text of a caller is written into a header.", THREATS)
THREAT_33 = Rule("Headers that differ from the body: 400 with -32020.", THREATS)
THREAT_34 = Rule(
    "Forged log lines and logged secrets: a record is one short line without headers, tokens, keys or queries.", THREATS
)
THREAT_35 = Rule("Shared caches: `cacheScope` is public only where all callers get the same.", THREATS)
THREAT_36 = Rule("Confusable names: one spelling names one feature.", THREATS)
THREAT_37 = Rule("Bypassed permissions: one place decides about the feature that would run.", THREATS)
THREAT_38 = Rule("Lists that disclose features: a caller without credentials learns only of what it may use.", THREATS)
THREAT_39 = Rule("Tools that hang: each run has a time limit, and its place is free afterwards.", THREATS)
THREAT_40 = Rule("Cancelling the requests of others: only the session that sent a request cancels it.", THREATS)
THREAT_44 = Rule("Text that ends an event or a line: text is always escaped.", THREATS)
THREAT_45 = Rule(
    "Names with a meaning in Python or JavaScript: input is looked up in tables and never evaluated.", THREATS
)
THREAT_47 = Rule("Decompression bombs: compressed input is not accepted.", THREATS)
THREAT_48 = Rule("Input that fills memory: what the server remembers of input is limited.", THREATS)
THREAT_49 = Rule("Hostile servers: a server neither steers the terminal nor keeps the command line busy.", THREATS)
