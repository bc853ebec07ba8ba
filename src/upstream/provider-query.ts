// One call to one provider for an operator: the answer, its time, or the error without secrets.
// Within the provider's limits; changes no health.
import type { Provider } from "../core/provider/profile.ts";
import { redact } from "../core/redact/redact.ts";
import { repeatsSecret } from "./engine/refusal.ts";
import { callProvider, type ProviderCall, type ProviderCallParts, verdictOn } from "./rpc-call.ts";

/** An error of a provider as an operator sees it. */
export interface ShownError {
  readonly category: string;
  readonly code: number | null;
  readonly http_status: number | null;
  /** Without secrets. */
  readonly message: string;
}

/** What came of a call. */
export type QueryResult =
  | { readonly kind: "result"; readonly result: Buffer; readonly latencyMs: number }
  | { readonly kind: "error"; readonly error: ShownError; readonly latencyMs: number };

const TIMEOUT_MS = 10_000;
const MAX_MESSAGE_CHARS = 500;

/** Sends a call; always resolves. */
export async function queryProvider(
  parts: ProviderCallParts,
  call: ProviderCall,
): Promise<QueryResult> {
  const { runtime } = parts;
  const startedAtMs = runtime.now();
  const answer = await callProvider(parts, call, TIMEOUT_MS);
  const latencyMs = Math.round((runtime.now() - startedAtMs) * 100) / 100;
  if (Buffer.isBuffer(answer)) return { kind: "result", result: answer, latencyMs };
  const { code, httpStatus, message } = answer;
  const error = {
    category: verdictOn(answer, call, runtime).category,
    code,
    http_status: httpStatus === 0 ? null : httpStatus,
    message: shownMessage(call.provider, message),
  };
  return { kind: "error", error, latencyMs };
}

function shownMessage(provider: Provider, message: string): string {
  const short = message.slice(0, MAX_MESSAGE_CHARS).toWellFormed();
  return repeatsSecret(provider, message) ? HIDDEN : redact(short);
}

const HIDDEN = "the message repeats a secret of the provider's address and is not shown";
