// The worker for Node function apps. It runs the app's own @azure/functions and takes the place of
// @azure/functions-core, which is what that library finds inside Microsoft's worker. The frames are described in
// frames.py.
"use strict";

const { randomUUID } = require("crypto");
const fs = require("fs");
const Module = require("module");
const net = require("net");
const path = require("path");
const { pathToFileURL } = require("url");
const { format } = require("util");

const LEVELS = { trace: 10, debug: 10, information: 20, warning: 30, error: 40, critical: 50, none: 20 };
const PARENT_MILLISECONDS = 1000;
const MAX_TEXT = 20000;

/** The socket to the host. */
class Link {
    constructor(descriptor, receive) {
        this.receive = receive;
        this.chunks = [];
        this.size = 0;
        this.needed = 4;
        this.isCorked = false;
        this.socket = new net.Socket({ fd: descriptor, readable: true, writable: true });
        this.socket.on("data", (data) => this.read(data));
        this.socket.on("error", endAll);
        this.socket.on("close", endAll);
    }

    send(header, parts = []) {
        if (parts.length > 0) {
            header.sizes = parts.map((part) => part.length);
        }
        const text = Buffer.from(JSON.stringify(header));
        const length = Buffer.alloc(4);
        length.writeUInt32BE(text.length);
        if (!this.isCorked) {
            // Answers of the same turn of the event loop leave together.
            this.isCorked = true;
            this.socket.cork();
            process.nextTick(() => this.flush());
        }
        this.socket.write(length);
        this.socket.write(text);
        for (const part of parts) {
            this.socket.write(part);
        }
    }

    flush() {
        if (this.isCorked) {
            this.isCorked = false;
            this.socket.uncork();
        }
    }

    read(data) {
        this.chunks.push(data);
        this.size += data.length;
        if (this.size < this.needed) {
            return;
        }
        let buffer = Buffer.concat(this.chunks);
        const frames = [];
        this.needed = 4;
        for (;;) {
            const frame = nextFrame(buffer);
            if (typeof frame === "number") {
                this.needed = frame;
                break;
            }
            frames.push(frame);
            buffer = buffer.subarray(frame.end);
        }
        this.chunks = [buffer];
        this.size = buffer.length;
        this.receive(frames);
    }
}

/** Return the first frame of a buffer, or the number of bytes that it needs. */
function nextFrame(buffer) {
    if (buffer.length < 4) {
        return 4;
    }
    let end = 4 + buffer.readUInt32BE(0);
    if (buffer.length < end) {
        return end;
    }
    const header = JSON.parse(buffer.toString("utf8", 4, end));
    const parts = [];
    for (const size of header.sizes || []) {
        parts.push(buffer.subarray(end, end + size));
        end += size;
    }
    return buffer.length < end ? end : { header, parts, end };
}

/** End this process and those that the app has started. */
function endAll() {
    process.kill(-process.pid, "SIGKILL");
}

const functions = new Map();
const hooks = { appStart: [], appTerminate: [], preInvocation: [], postInvocation: [], log: [] };
const appHookData = {};
const running = new Map();
let programmingModel;
let hasLoaded = false;
let link;

/** What @azure/functions uses of the worker. */
const core = {
    version: "3.0.0",
    hostVersion: "4.1000.0",
    registerFunction(metadata, callback) {
        if (hasLoaded) {
            throw new Error("A function can only be registered during app startup.");
        }
        if (functions.has(metadata.name)) {
            throw new Error(`A function with the name "${metadata.name}" is registered already.`);
        }
        functions.set(metadata.name, { metadata, callback });
        return { dispose: () => functions.delete(metadata.name) };
    },
    setProgrammingModel(model) {
        programmingModel = model;
    },
    getProgrammingModel() {
        return programmingModel;
    },
    registerHook(name, callback) {
        if (!(name in hooks)) {
            const error = new RangeError(`Unrecognized hook "${name}"`);
            error.isAzureFunctionsSystemError = true;
            throw error;
        }
        hooks[name].push(callback);
        return { dispose: () => hooks[name].splice(hooks[name].indexOf(callback), 1) };
    },
    log(level, category, message) {
        sendLog(level, category, message, "", "");
    },
    async getFuncPath() {
        return process.cwd();
    },
};

function sendLog(level, category, message, functionName, invocationId, invocationContext) {
    const context = { level, message, category, invocationContext, hookData: {}, appHookData };
    for (const hook of hooks.log) {
        hook(context);
    }
    const system = category === "system" && (LEVELS[context.level] || 20) < 30;
    link.send({
        m: "log",
        level: system ? 10 : LEVELS[context.level] || 20,
        text: String(context.message).slice(0, MAX_TEXT),
        logger: category,
        function: functionName,
        invocation: invocationId,
    });
}

const load = Module._load;
Module._load = function (request, ...rest) {
    return request === "@azure/functions-core" ? core : load.call(this, request, ...rest);
};

function typedData(value, parts) {
    switch (value.t) {
        case "null":
            return undefined;
        case "http":
            return { http: { ...value.v, body: { bytes: parts[value.p] } } };
        case "bytes":
            return { bytes: parts[value.p] };
        case "int":
        case "double":
            return { [value.t]: value.v };
        default:
            return { [value.t]: parts[value.p].toString("utf8") };
    }
}

function packed(data, parts) {
    if (data === null || data === undefined) {
        return { t: "null" };
    }
    const [kind, value] = Object.entries(data)[0];
    if (kind === "int" || kind === "double") {
        return { t: kind, v: value };
    }
    if (kind === "http") {
        const headers = Object.entries(value.headers || {});
        for (const cookie of value.cookies || []) {
            headers.push(["set-cookie", cookieText(cookie)]);
        }
        const body = value.body || {};
        parts.push(body.bytes ? Buffer.from(body.bytes) : Buffer.from(body.string || body.json || ""));
        return { t: kind, v: { status: Number(value.statusCode), headers }, p: parts.length - 1 };
    }
    parts.push(kind === "bytes" ? Buffer.from(value) : Buffer.from(String(value)));
    return { t: kind, p: parts.length - 1 };
}

function cookieText(cookie) {
    const plain = (member) => (member && typeof member === "object" && "value" in member ? member.value : member);
    let text = `${cookie.name}=${encodeURIComponent(cookie.value)}`;
    const maxAge = plain(cookie.maxAge);
    const expires = plain(cookie.expires);
    text += maxAge === undefined || maxAge === null ? "" : `; Max-Age=${maxAge}`;
    text += plain(cookie.domain) ? `; Domain=${plain(cookie.domain)}` : "";
    text += plain(cookie.path) ? `; Path=${plain(cookie.path)}` : "";
    text += expires ? `; Expires=${new Date(expires).toUTCString()}` : "";
    text += plain(cookie.httpOnly) ? "; HttpOnly" : "";
    text += plain(cookie.secure) ? "; Secure" : "";
    const sameSite = { 1: "Lax", 2: "Strict", 3: "None", lax: "Lax", strict: "Strict", none: "None" };
    const chosen = sameSite[String(cookie.sameSite).toLowerCase().replace("explicitnone", "none")];
    return chosen ? `${text}; SameSite=${chosen}` : text;
}

async function runHooks(name, context) {
    for (const hook of hooks[name]) {
        await hook(context);
    }
}

/** Say that a call begins. It leaves at once, because the app's code may block the loop or end the process. */
function sendBegun(header) {
    link.send({ m: "begun", id: header.id });
    link.flush();
}

async function invoke(header, parts) {
    const { metadata, callback } = functions.get(header.f);
    const invocationId = header.iid || randomUUID();
    let context;
    const coreContext = {
        invocationId,
        metadata,
        state: undefined,
        request: {
            invocationId,
            functionId: header.f,
            inputData: Object.entries(header.inputs).map(([name, value]) => ({ name, data: typedData(value, parts) })),
            triggerMetadata: Object.fromEntries(
                Object.entries(header.meta).map(([name, value]) => [name, typedData(value, parts)])
            ),
            traceContext: { traceParent: header.trace || "", traceState: "", attributes: {} },
            retryContext: null,
        },
        log: (level, category, message) => sendLog(level, category, message, header.f, invocationId, context),
    };
    const model = programmingModel.getInvocationModel(coreContext);
    const found = await model.getArguments();
    context = found.context;
    const hookData = {};
    const before = { hookData, appHookData, inputs: found.inputs, functionCallback: callback, invocationContext: context };
    coreContext.state = "preInvocationHooks";
    const hasHooks = hooks.preInvocation.length > 0;
    if (hasHooks) {
        sendBegun(header);
        await runHooks("preInvocation", before);
    }
    const after = { hookData, appHookData, inputs: before.inputs, invocationContext: context, result: null, error: null };
    coreContext.state = "invocation";
    try {
        if (!hasHooks) {
            sendBegun(header); // not earlier: another call that has arrived with this one may block the loop
        }
        after.result = await model.invokeFunction(context, before.inputs, before.functionCallback);
    } catch (error) {
        after.error = error;
    }
    coreContext.state = "postInvocationHooks";
    await runHooks("postInvocation", after);
    coreContext.state = undefined;
    if (after.error) {
        throw after.error;
    }
    const response = await model.getResponse(context, after.result);
    const answerParts = [];
    const outputs = {};
    for (const output of response.outputData || []) {
        outputs[output.name] = packed(output.data, answerParts);
    }
    const value = packed(response.returnValue, answerParts);
    link.send({ m: "done", id: header.id, value, outputs }, answerParts);
}

function described(error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : format(error);
    const trace = error instanceof Error ? String(error.stack) : "";
    return { error: text.slice(0, MAX_TEXT), trace: trace.slice(0, MAX_TEXT) };
}

function receive(frames) {
    for (const { header, parts } of frames) {
        if (header.m === "ping") {
            setImmediate(() => link.send({ m: "pong" })); // behind the beginnings of the calls before it
        } else if (header.m === "invoke") {
            invoke(header, parts).catch((error) => link.send({ m: "error", id: header.id, ...described(error) }));
        }
    }
}

/** Return the alternatives of a text with {a,b}. */
function expanded(text) {
    const match = /\{([^{}]*)\}/.exec(text);
    if (match === null) {
        return [text];
    }
    const [before, after] = [text.slice(0, match.index), text.slice(match.index + match[0].length)];
    return match[1].split(",").flatMap((choice) => expanded(before + choice + after));
}

/** Return the files that a pattern of package.json's "main" names. */
function filesOf(pattern) {
    if (!/[*?]/.test(pattern)) {
        const found = [pattern, `${pattern}.js`, path.join(pattern, "index.js")].find(isFile);
        return found === undefined ? [] : [found];
    }
    const expression = pattern
        .replace(/^\.\//, "")
        .split(/(\*\*\/|\*|\?)/)
        .map((part) => {
            const special = { "**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]" };
            return special[part] || part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
        })
        .join("");
    return allFiles(".").filter((file) => new RegExp(`^${expression}$`).test(file)).sort();
}

function isFile(name) {
    try {
        return fs.statSync(name).isFile();
    } catch {
        return false;
    }
}

function allFiles(folder) {
    return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
        const name = folder === "." ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory()) {
            return entry.name === "node_modules" || entry.name.startsWith(".") ? [] : allFiles(name);
        }
        return [name];
    });
}

async function loadApp() {
    const manifest = JSON.parse(fs.readFileSync("package.json", "utf8").replace(/^\uFEFF/, ""));
    const main = manifest.main || "index.js";
    const files = expanded(main).flatMap(filesOf);
    if (files.length === 0) {
        const build = manifest.scripts && manifest.scripts.build;
        const advice = build ? 'Run "npm run build" in the app\'s folder' : 'Correct "main" in package.json';
        throw new Error(`package.json names ${main} as main, and there is no such file. ${advice}`);
    }
    for (const file of files) {
        await import(pathToFileURL(path.resolve(file)).href);
    }
    if (programmingModel === undefined) {
        throw new Error(`${main} registers no function with @azure/functions 4`);
    }
    const capabilities = await capabilitiesOf(programmingModel);
    await runHooks("appStart", { hookData: appHookData, appHookData });
    hasLoaded = true;
    return capabilities.HttpUri || null;
}

/** Return the library's capabilities. The HTTP server that it may start listens on loopback, not on all addresses. */
async function capabilitiesOf(model) {
    const listen = net.Server.prototype.listen;
    net.Server.prototype.listen = function (...options) {
        const [callback] = options;
        return typeof callback === "function" ? listen.call(this, 0, "127.0.0.1", callback) : listen.apply(this, options);
    };
    try {
        const capabilities = await model.getCapabilities({});
        if (capabilities.HttpUri) {
            capabilities.HttpUri = capabilities.HttpUri.replace("//localhost:", "//127.0.0.1:");
        }
        return capabilities;
    } finally {
        net.Server.prototype.listen = listen;
    }
}

/** Return one line about an app that can't be loaded, with the line of the app's own code. */
function loadingError(error) {
    const message = String((error && error.message) || error).split("\n")[0].replace(/\.$/, "");
    const place = placeOf(error);
    let text = `${place ? `${place}: ` : ""}${error && error.name}: ${message}`;
    if (error && (error.code === "MODULE_NOT_FOUND" || error.code === "ERR_MODULE_NOT_FOUND")) {
        // A package has a plain name. A path that does not exist is a file of the app that was renamed or not built.
        const isFile = /^Cannot find module '(?:\.|\/|[A-Za-z]:)/.test(message);
        text += isFile ? ". Correct the path: the app has no such file" : `. Run npm install in ${process.cwd()}`;
    }
    return `${text}.`;
}

/** Return the file and line of the app's own code to which an error belongs; an empty text if there is none. */
function placeOf(error) {
    const folder = process.cwd() + path.sep;
    const isOwn = (file) => file.startsWith(folder) && !file.includes(`${path.sep}node_modules${path.sep}`);
    for (const line of String((error && error.stack) || "").split("\n")) {
        const match = /((?:[A-Za-z]:)?[\\/][^:()]*):(\d+)(?::\d+)?\)?$/.exec(line.trim());
        const file = match && (match[1].startsWith("//") ? match[1].replace(/^\/+/, "/") : match[1]);
        if (match && isOwn(file)) {
            return `${path.relative(folder, file)}, line ${match[2]}`;
        }
    }
    const missing = /^Cannot find (?:module|package) '([^']+)' imported from (.+)$/.exec(String(error && error.message).split("\n")[0]);
    if (!missing || !isOwn(missing[2])) {
        return "";
    }
    const name = path.basename(missing[1]);
    const lines = fs.readFileSync(missing[2], "utf8").split("\n");
    const number = lines.findIndex((line) => line.includes("import") && new RegExp(`['"/]${escaped(name)}['"]`).test(line));
    return `${path.relative(folder, missing[2])}${number < 0 ? "" : `, line ${number + 1}`}`;
}

function escaped(text) {
    return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

async function main() {
    const parent = process.ppid;
    setInterval(() => process.ppid === parent || endAll(), PARENT_MILLISECONDS).unref();
    link = new Link(Number(process.argv[2]), receive);
    process.on("uncaughtException", (error) => sendLog("error", "user", `Uncaught exception: ${error && error.stack}`, "", ""));
    process.on("unhandledRejection", (error) => sendLog("error", "user", `Unhandled rejection: ${error && error.stack}`, "", ""));
    try {
        const http = await loadApp();
        const rows = [...functions.values()].map(({ metadata }) => ({
            name: metadata.name,
            bindings: Object.entries(metadata.bindings).map(([name, binding]) => JSON.stringify({ ...binding, name })),
            error: null,
        }));
        const library = `${programmingModel.name} ${programmingModel.version}`;
        link.send({ m: "ready", functions: rows, http, runtime: `Node ${process.versions.node}, ${library}` });
    } catch (error) {
        link.send({ m: "failed", error: loadingError(error), trace: described(error).trace });
        link.socket.end(() => process.exit(1));
    }
}

main();
