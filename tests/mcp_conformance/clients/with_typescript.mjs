// The official TypeScript SDK, asked by tests/mcp_conformance/test_clients.py: NODE_MODULES GENERATION URL TOOL ARGUMENTS BROWSER
// [DOCUMENT] [ENTERED]. It knows the URL alone; BROWSER, as JSON, is the command that opens an address and prints where it was sent in the end.
// DOCUMENT: the address of its document, which is then its id (CIMD); without one it registers. ENTERED, as JSON: the id and the secret
// that somebody has entered for it at the hub; DOCUMENT is then empty.

import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";

const [modules, generation, url, tool, args, browser, document, entered] = process.argv.slice(2);
const load = createRequire(join(modules, "index.js"));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  generation === "1"
    ? {
        ...load("@modelcontextprotocol/sdk/client/index.js"),
        ...load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        ...load("@modelcontextprotocol/sdk/client/auth.js"),
      }
    : load("@modelcontextprotocol/client");

const kept = entered ? { client: JSON.parse(entered) } : {};
const redirectUrl = "http://127.0.0.1:53219/callback";
const authProvider = {
  redirectUrl,
  clientMetadataUrl: document || undefined,
  clientMetadata: {
    client_name: `TypeScript SDK ${generation}`,
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: entered ? "client_secret_post" : "none",
  },
  state: () => "a-state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  redirectToAuthorization: (address) => void (kept.address = address.href),
};

const make = () => [
  new Client({ name: "tests", version: "1" }),
  new StreamableHTTPClientTransport(new URL(url), { authProvider }),
];

const [stranger, first] = make();
try {
  await stranger.connect(first);
  throw new Error("It came in without a token.");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const [program, ...words] = JSON.parse(browser);
const { stdout } = await promisify(execFile)(program, [...words, kept.address]);
const answer = new URL(stdout.trim()).searchParams;
if (answer.get("state") !== "a-state") throw new Error("Another state came back.");
await first.finishAuth(generation === "1" ? answer.get("code") : answer);

const [client, transport] = make();
await client.connect(transport);
const { tools } = await client.listTools();
const called = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools: tools.map((each) => each.name), value: called.structuredContent }));
await client.close();
