// Renders refusals as JSON-RPC error objects, and the end of an envelope. Knows no HTTP.

import { type Fault, faultError } from "../../core/faults/rpc-fault.ts";

/** A refusal as a JSON-RPC error object; `meta`: its evidence. */
export function renderFault(why: Fault, id: string, meta: object | null = null): Buffer {
  return Buffer.from(
    `{"jsonrpc":"2.0","id":${id},"error":${faultError(why)}${closing(meta).toString()}`,
  );
}

/** The end of an envelope, with evidence if there is any. */
export function closing(meta: object | null): Buffer {
  return meta === null ? CLOSE : Buffer.from(`,"svc_meta":${JSON.stringify(meta)}}`);
}

export const CLOSE = Buffer.from("}");
