// A client of the protocol that is not in Python: connects, lists, calls, answers a question, hears of progress, reads a resource.
// Usage: handrail_client.mjs stdio COMMAND ARGS… | http URL TOKEN. Prints what it saw as JSON.
import { existsSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [kind, ...rest] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(rest[0]), {
        requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } },
      });

const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
const questions = [];
client.setRequestHandler(ElicitRequestSchema, (request) => {
  questions.push(request.params.message);
  return { action: "accept", content: { answer: "once" } };
});

// The JSON of a result, which is the line inside the envelope where there is one.
function fieldsOf(result) {
  const lines = result.content[0].text.split("\n");
  return JSON.parse(lines[lines.length >> 1]);
}

await client.connect(transport);
const { tools } = await client.listTools();
const scribbled = await client.callTool({ name: "scribble", arguments: { word: "hello" } });
const progress = [];
await client.callTool({ name: "count", arguments: { to: 12 } }, undefined, {
  onprogress: (told) => progress.push(told.progress),
});
const pictures = await client.callTool({ name: "pictures", arguments: {} });
await client.callTool({ name: "lines", arguments: { to: 9000 } });
const { resources } = await client.listResources();
const page = await client.readResource({ uri: `${resources.at(-1).uri}?page=2` });
const cancelled = new AbortController();
const nursed = client
  .callTool({ name: "nurse", arguments: {} }, undefined, { signal: cancelled.signal })
  .catch((error) => String(error));
// Until its child is there.
while (!existsSync("child.pid")) await new Promise((done) => setTimeout(done, 50));
cancelled.abort("enough");
await nursed;
await client.ping();

const seen = {
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  questions,
  scribbled: fieldsOf(scribbled),
  progress,
  pictures: pictures.content.map((block) => block.type),
  envelope: pictures.content[0].text.split("\n").map((line) => line.slice(0, 11)),
  structured: [scribbled, pictures].some((result) => "structuredContent" in result),
  resources: resources.map((resource) => resource.uri),
  page: page.contents[0]._meta["handrail/page"],
};
await client.close();
console.log(JSON.stringify(seen));
