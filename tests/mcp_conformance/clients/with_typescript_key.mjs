// The official TypeScript SDK, asked by tests/mcp_conformance/test_clients.py: NODE_MODULES GENERATION URL TOOL ARGUMENTS HOW AGENT KEY.
// Nobody signs in: HOW is "credentials", when it fetches a token for the agent's key (client_credentials), or "header", when it sends it.

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, generation, url, tool, args, how, agent, key] = process.argv.slice(2);
const load = createRequire(join(modules, "index.js"));
const { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } =
  generation === "1"
    ? {
        ...load("@modelcontextprotocol/sdk/client/index.js"),
        ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...load("@modelcontextprotocol/sdk/client/auth-extensions.js"),
      }
    : load("@modelcontextprotocol/client");

const options =
  how === "header"
    ? { requestInit: { headers: { Authorization: `Bearer ${key}` } } }
    : { authProvider: new ClientCredentialsProvider({ clientId: agent, clientSecret: key, expectedIssuer: new URL(url).origin }) };
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
const { tools } = await client.listTools();
const called = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools: tools.map((each) => each.name), value: called.structuredContent }));
await client.close();
