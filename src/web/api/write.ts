// Writes the answers of the management API: bodies as JSON, refusals in its envelope, none of it to be stored.
import type { ServerResponse } from "node:http";
import type { ApiFault } from "../../core/api-fault.ts";
import { type Headers, retryAfter, write } from "../respond.ts";

/** Writes an answer; null = no body. */
export function writeAnswer(response: ServerResponse, headers: Headers, status: number, body: unknown): void {
  headers.push("Cache-Control", "no-store");
  write(response, status, headers, body === null ? null : [Buffer.from(JSON.stringify(body))]);
}

/** Writes a refusal; `baseUrl` leads to what explains its code. */
export function writeApiFault(response: ServerResponse, headers: Headers, why: ApiFault, baseUrl: string): void {
  if (why.retryAfterMs !== null) headers.push("Retry-After", retryAfter(why.retryAfterMs));
  if (why.code === "unauthorized") headers.push("WWW-Authenticate", 'Bearer realm="svc"');
  writeAnswer(response, headers, why.status, envelopeOf(why, baseUrl));
}

/** A refusal in the envelope of the management API. */
function envelopeOf({ code, message, nextAction, details }: ApiFault, baseUrl: string): object {
  const told = details.length === 0 ? {} : { details };
  return { error: { code, message, next_action: nextAction, docs_url: `${baseUrl}/docs/errors#${code}`, ...told } };
}
