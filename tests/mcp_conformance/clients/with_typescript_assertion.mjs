// The official TypeScript SDK of the second generation, asked by tests/mcp_conformance/test_clients.py:
// NODE_MODULES URL TOOL ARGUMENTS ENTERPRISE. ENTERPRISE, as JSON: {issuer, secret} of the identity provider, {clientId, clientSecret}
// of the program at the hub. No browser: the identity provider says for whom it acts (ID-JAG).

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, url, tool, args, enterprise] = process.argv.slice(2);
const load = createRequire(join(modules, "index.js"));
const { Client, CrossAppAccessProvider, StreamableHTTPClientTransport, requestJwtAuthorizationGrant } =
  load("@modelcontextprotocol/client");
const { issuer, secret, clientId, clientSecret } = JSON.parse(enterprise);

const authProvider = new CrossAppAccessProvider({
  clientId,
  clientSecret,
  expectedIssuer: new URL(url).origin,
  assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) => {
    const granted = await requestJwtAuthorizationGrant({
      tokenEndpoint: `${issuer}/token`,
      audience: authorizationServerUrl.replace(/\/$/, ""),
      resource: resourceUrl,
      idToken: "what.the.person.signed-in-with",
      clientId,
      clientSecret: secret,
      fetchFn,
    });
    return granted.jwtAuthGrant;
  },
});
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
const { tools } = await client.listTools();
const called = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools: tools.map((each) => each.name), value: called.structuredContent }));
await client.close();
