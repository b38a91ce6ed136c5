// A program on the types that openapi-typescript makes: those of a call, of its problem, and of a list are known.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type Call = components["schemas"]["Call"];
type States = Call["state"];
const waits: States[] = ["held", "queued", "running"];

export async function quote(address: string, key: string): Promise<string> {
  const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${key}` } });
  const { data, error } = await client.POST("/api/v1/tools/{tool_id}/invoke", {
    params: { path: { tool_id: "commerce.pricing.get_realtime_quote" }, header: { "Idempotency-Key": "quote-7" } },
    body: {
      request_id: "generated-1",
      actor: { type: "agent", id: "shopping-assistant" },
      arguments: { sku: "LAPTOP-14", quantity: 2, currency: "EUR" },
    },
  });
  if (error) throw new Error(`${error.error.reason}: ${error.error.remedy}`);
  const call: Call = data.call;
  if (waits.includes(call.state)) return call.held?.url ?? call.call_id;
  // @ts-expect-error a call has no such field
  const nothing: string = call.colour;
  return `${call.tool} ${call.version ?? ""} ${data.evidence.sources.map((source) => source.hash).join()}${nothing}`;
}

export async function list(address: string, key: string): Promise<string[]> {
  const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${key}` } });
  const { data } = await client.GET("/api/v1/invocations", { params: { query: { q: "outcome:failed", limit: 10 } } });
  return data?.data.invocations.map((row) => `${row.created_at} ${row.tool} ${row.reason ?? "ok"}`) ?? [];
}
