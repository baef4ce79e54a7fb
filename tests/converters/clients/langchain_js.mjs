// @langchain/mcp-adapters, with the models of OpenAI and Google.
import { CallError, each, main, require, sent } from "./playing.mjs";

const { MultiServerMCPClient } = require("@langchain/mcp-adapters");
const { ChatOpenAI } = require("@langchain/openai");
const { ChatGoogleGenerativeAI } = require("@langchain/google-genai");

async function forOpenAI(tool) {
  const request = (fetch) =>
    new ChatOpenAI({ model: "gpt-4.1", apiKey: "none", maxRetries: 0, configuration: { fetch } })
      .bindTools([tool])
      .invoke("Hello");
  return (await sent(request)).tools[0].function;
}

const gemini = new ChatGoogleGenerativeAI({ model: "gemini-2.5-pro", apiKey: "none" });

function forGoogle(tool) {
  return gemini.bindTools([tool]).config.tools[0].functionDeclarations[0];
}

async function connect(url) {
  const client = new MultiServerMCPClient({
    mcpServers: { server: { transport: "http", url } },
    prefixToolNameWithServerName: false,
    throwOnLoadError: true,
  });
  const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
  return {
    declarations: async () => ({
      openai: await each(forOpenAI, Object.entries(tools)),
      gemini: await each(forGoogle, Object.entries(tools)),
    }),
    async call(name, args) {
      const message = await tools[name].invoke({ type: "tool_call", id: "1", name, args });
      if (message.status === "error") throw new CallError(message.content);
      return JSON.stringify(message.content);
    },
    read: async (uri) => JSON.stringify(await client.readResource("server", uri)),
    async prompt(name, args) {
      const connected = await client.getClient("server");
      return JSON.stringify(await connected.getPrompt({ name, arguments: args }));
    },
    close: () => client.close(),
  };
}

await main(connect);
