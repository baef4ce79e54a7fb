// The connection of a client of the official TypeScript SDK, for both versions.
import { CallError } from "./playing.mjs";

export function official(client) {
  return {
    async declarations() {
      const { tools } = await client.listTools();
      const declared = tools.map(({ name, description, inputSchema }) => [name, { name, description, parameters: inputSchema }]);
      return { "": Object.fromEntries(declared) };
    },
    async call(name, args) {
      const result = await client.callTool({ name, arguments: args });
      if (result.isError) throw new CallError(result.content[0].text);
      return JSON.stringify(result);
    },
    read: async (uri) => JSON.stringify(await client.readResource({ uri })),
    prompt: async (name, args) => JSON.stringify(await client.getPrompt({ name, arguments: args })),
    close: () => client.close(),
  };
}
