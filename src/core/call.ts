// A call: one JSON-RPC request bound for one chain, as the router sees it. Knows neither HTTP nor the caller's envelope beyond the bytes to forward.
import type { Method } from "./method.ts";

/** Which blocks a call reads, as far as its parameters say. `none`: no block parameter, a tag near the head, or one that cannot be read. */
export type BlockRef =
  | { readonly kind: "none" }
  | { readonly kind: "tag"; readonly tag: "pending" | "safe" | "finalized" }
  | { readonly kind: "earliest" }
  | { readonly kind: "hash" }
  | { readonly kind: "number"; readonly number: number }
  /** Inclusive; null = the head. `from` is null when it is a tag near the head. */
  | { readonly kind: "range"; readonly from: number | null; readonly to: number | null };

/** One JSON-RPC request bound for one chain. */
export interface Call {
  /** As the caller wrote it; unlisted names share a `method` row but keep their own name here. */
  readonly methodName: string;
  readonly method: Method;
  readonly block: BlockRef;
  /** The envelope to send upstream, one JSON object. */
  readonly body: Buffer;
  /** The id inside `body`, as JSON text; the answer must carry the same. */
  readonly wireId: string;
}
