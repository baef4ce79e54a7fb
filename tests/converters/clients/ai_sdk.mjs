// The AI SDK: @ai-sdk/mcp, with the models of OpenAI, Google and Anthropic.
import { CallError, each, main, require, sent } from "./playing.mjs";

const { createMCPClient } = require("@ai-sdk/mcp");
const { generateText } = require("ai");
const { createAnthropic } = require("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = require("@ai-sdk/google");
const { createOpenAI } = require("@ai-sdk/openai");

const APIS = {
  openai: {
    model: (fetch) => createOpenAI({ apiKey: "none", fetch })("gpt-5"),
    declaration: ({ tools: [tool] }) => tool,
  },
  "gemini json": {
    model: (fetch) => createGoogleGenerativeAI({ apiKey: "none", fetch })("gemini-3-pro"),
    declaration: ({ tools: [{ functionDeclarations: [{ parametersJsonSchema, ...tool }] }] }) => ({
      ...tool,
      parameters: parametersJsonSchema,
    }),
  },
  anthropic: {
    model: (fetch) => createAnthropic({ apiKey: "none", fetch })("claude-sonnet-4-5"),
    declaration: ({ tools: [{ input_schema, ...tool }] }) => ({ ...tool, parameters: input_schema }),
  },
};

async function connect(url) {
  const client = await createMCPClient({ transport: { type: "http", url } });
  const tools = await client.tools();
  return {
    async declarations() {
      const declared = {};
      for (const [api, { model, declaration }] of Object.entries(APIS)) {
        const convert = async (tool, name) =>
          declaration(
            await sent((fetch) =>
              generateText({ model: model(fetch), tools: { [name]: tool }, prompt: "Hello", maxRetries: 0 }),
            ),
          );
        declared[api] = await each(convert, Object.entries(tools));
      }
      return declared;
    },
    async call(name, args) {
      const options = { toolCallId: "1", messages: [] };
      const result = await tools[name].execute(args, options);
      if (result.isError) throw new CallError(result.content[0].text);
      const output = await tools[name].toModelOutput?.({ toolCallId: "1", input: args, output: result });
      return JSON.stringify(output ?? result);
    },
    read: async (uri) => JSON.stringify(await client.readResource({ uri })),
    prompt: async (name, args) => JSON.stringify(await client.experimental_getPrompt({ name, arguments: args })),
    close: () => client.close(),
  };
}

await main(connect);
