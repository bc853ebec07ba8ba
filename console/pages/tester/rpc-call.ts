// One call over JSON-RPC as the tester sends it. A key goes in a header, never into an address that
// a history could keep; cookies stay behind.
import { NO_ANSWER, type Result, SERVICE_URL } from "../../api/client.ts";
import { parseJson } from "../../api/json.ts";

/** What to call, and how. */
export interface TestCall {
  /** Null = the profile that serves callers who name none. */
  readonly profile: string | null;
  readonly chain: string;
  readonly strategy: string;
  /** Null = the strategy chooses. */
  readonly provider: string | null;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What came back. */
export interface TestAnswer {
  readonly call: TestCall;
  readonly status: number;
  readonly ms: number;
  readonly bytes: number;
  /** Without `svc_meta`. */
  readonly body: unknown;
  readonly meta: unknown;
  readonly headers: readonly (readonly [string, string])[];
}

const TIMEOUT_MS = 120_000;

/** The address of a call, as a path from the root of the service. */
export function pathOf({ profile, strategy, chain, provider }: TestCall): string {
  const parts = ["rpc", ...(profile === null ? [] : ["profile", profile]), strategy, chain];
  const path = parts.map(encodeURIComponent).join("/");
  return provider === null ? path : `${path}?provider=${encodeURIComponent(provider)}`;
}

/** Sends it; `key` "" = without one. */
export async function sendCall(call: TestCall, key: string): Promise<Result<TestAnswer>> {
  const url = new URL(pathOf(call), SERVICE_URL);
  url.searchParams.set("include_meta", "body");
  const startedAt = performance.now();
  try {
    const response = await fetch(url, {
      method: "POST",
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        "content-type": "application/json",
        ...(key === "" ? {} : { "x-svc-api-key": key }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: call.method, params: call.params }),
    });
    const text = await response.text();
    const ms = performance.now() - startedAt;
    const { svc_meta: meta = null, ...body } = Object(parseJson(text) ?? { text });
    const headers = [...response.headers].filter(([name]) => name.startsWith("x-svc-"));
    const { status } = response;
    return { kind: "ok", body: { call, status, ms, bytes: text.length, body, meta, headers } };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "failed", failure: { ...NO_ANSWER, message } };
  }
}
