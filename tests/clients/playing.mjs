// Plays a plan (see plan.py) with a TypeScript SDK: what is the same in both of them.

const HEAR_MS = 20_000;
const AGAIN_MS = 1_000;

export const capabilities = { elicitation: {}, sampling: {}, roots: {} };

export class Player {
  // `sdk` has the client, its transport and what differs: `perRequest()`, `call(client, params, options)`.
  constructor(client, sdk) {
    this.client = client;
    this.sdk = sdk;
    this.heard = [];
    this.wake = () => {};
    client.fallbackNotificationHandler = async (notification) => {
      this.heard.push({ method: notification.method, params: notification.params });
      this.wake();
    };
  }

  // Returns what answers a question of the server.
  answering(method) {
    return (request) => {
      this.current.questions.push(request.params ?? {});
      return this.current.answers[method];
    };
  }

  // If progress and the answer behind it come in one piece, the SDKs read the answer and drop the progress. What has
  // arrived is noted before they see it.
  tap(transport) {
    const onmessage = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (message.method === "notifications/progress") this.progressed(message.params);
      onmessage(message, extra);
    };
  }

  progressed({ progressToken, ...report }) {
    this.current.progress.push(report);
    if (this.current.cancel) this.current.abort.abort();
  }

  async play(plan) {
    const calls = [];
    for (const step of plan) {
      const questions = [];
      const progress = [];
      this.current = { answers: step.answers, cancel: step.cancel, questions, progress, abort: new AbortController() };
      const call = { questions, progress };
      try {
        call.result = await this.step(step.method, step.params);
      } catch (error) {
        if (!this.current.abort.signal.aborted) call.error = { code: error.code ?? null, message: String(error.message) };
      }
      calls.push(call);
    }
    return calls;
  }

  step(method, params) {
    const { client } = this;
    switch (method) {
      case "tools/call":
        return this.tool(params);
      case "watch":
        return this.watch(params);
      case "hear":
        return this.hear(params);
      case "logging/setLevel":
        return this.sdk.perRequest() ? null : client.setLoggingLevel(params.level);
      case "resources/unsubscribe":
        return this.sdk.perRequest() ? null : client.unsubscribeResource(params);
      case "resources/list":
        return client.listResources(params);
      case "resources/templates/list":
        return client.listResourceTemplates(params);
      case "resources/read":
        return client.readResource(params);
      case "prompts/list":
        return client.listPrompts(params);
      case "prompts/get":
        return client.getPrompt(params);
      case "completion/complete":
        return client.complete(params);
      default:
        throw new Error(`no client method for ${method}`);
    }
  }

  tool(params) {
    // A function for progress makes the SDKs ask for it.
    const options = { onprogress: () => {}, signal: this.current.abort.signal };
    const meta = this.sdk.perRequest() ? { _meta: { "io.modelcontextprotocol/logLevel": "debug" } } : {};
    return this.sdk.call({ ...params, ...meta }, options);
  }

  // Asks for changes: of lists, the handshake era tells unasked.
  async watch(wish) {
    if (this.sdk.perRequest()) await this.client.listen(wish);
    else for (const uri of wish.resourceSubscriptions ?? []) await this.client.subscribeResource({ uri });
  }

  async hear({ wanted, again }) {
    const deadline = Date.now() + HEAR_MS;
    while (!wanted.every((one) => this.heard.some((heard) => fits(heard, one)))) {
      if (Date.now() > deadline) throw new Error(`heard only ${JSON.stringify(this.heard)}`);
      const news = new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, AGAIN_MS);
      });
      for (const name of again) await this.client.callTool({ name });
      await news;
    }
    const { heard } = this;
    this.heard = [];
    return { heard };
  }
}

function fits(heard, wanted) {
  const entries = Object.entries(wanted.params);
  return heard.method === wanted.method && entries.every(([name, value]) => heard.params?.[name] === value);
}
