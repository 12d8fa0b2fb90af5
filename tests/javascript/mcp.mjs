// The official SDK's client for TypeScript at /mcp; prints what came back.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const found = { server: client.getServerVersion().name };

found.tools = (await client.listTools()).tools.map((one) => one.name).sort();
const message = { conversation: "talk", text: "hello", key: "one" };
const call = async (name, given) =>
  (await client.callTool({ name, arguments: given })).structuredContent;
const first = await call("send_message", message);
found.text = first.text;
found.once = (await call("send_message", message)).inbox_id === first.inbox_id;
const listed = (await client.listResources()).resources.map((one) => one.uri);
found.resources = listed.length;
const read = await client.readResource({ uri: "clew://conversations/talk" });
found.read = read.contents[0].text.includes("hello");
const wrong = await client.callTool({ name: "send_message", arguments: { text: 7 } });
found.wrong = wrong.isError;

await client.close();
console.log(JSON.stringify(found));
process.exit(0);
