// A function app with Azure's MCP triggers: notes in blobs. Serve it with `funcmcp host` or `func start`.
const { app, arg, input, output, promptArg } = require("@azure/functions");

const path = "notes/{mcptoolargs.name}.txt";
const noteInput = input.storageBlob({ connection: "AzureWebJobsStorage", path });
const noteOutput = output.storageBlob({ connection: "AzureWebJobsStorage", path });
const resourceInput = input.storageBlob({ connection: "AzureWebJobsStorage", path: "notes/{name}.txt" });

app.mcpTool("saveNote", {
    toolName: "save_note",
    description: "Save a note.",
    toolProperties: { name: arg.string().describe("The note's name"), text: arg.string().describe("The note's text") },
    extraOutputs: [noteOutput],
    handler: async (_arguments, context) => {
        const { name, text } = context.triggerMetadata.mcptoolargs;
        context.extraOutputs.set(noteOutput, text);
        return `Saved ${name}.`;
    },
});

app.mcpTool("loadNote", {
    toolName: "load_note",
    description: "Load a note.",
    toolProperties: { name: arg.string().describe("The note's name") },
    extraInputs: [noteInput],
    handler: async (_arguments, context) => {
        const note = context.extraInputs.get(noteInput);
        return note === undefined ? `There is no note ${context.triggerMetadata.mcptoolargs.name}.` : note;
    },
});

app.mcpResource("noteResource", {
    uri: "notes://{name}",
    resourceName: "note",
    description: "A note, by its name.",
    mimeType: "text/plain",
    extraInputs: [resourceInput],
    handler: async (_resource, context) => context.extraInputs.get(resourceInput) ?? "",
});

app.mcpPrompt("summarizeNote", {
    promptName: "summarize_note",
    description: "Ask for a summary of a note.",
    promptArguments: { name: promptArg.describe("The note's name").isRequired() },
    handler: async (prompt) => `Load the note ${prompt.arguments.name} and summarize it in one sentence.`,
});
