// Calls that hand in a raw transaction, and calls that ask for a transaction or for the next nonce
// of its sender, read from their bytes.
import type { Call } from "./call.ts";
import { elementAt, membersOf, OPEN_ARRAY, OPEN_OBJECT, type Span } from "./json.ts";

/** What a call has to do with transactions of callers. */
export type TransactionCall =
  /** It hands one in; `isPrivate`: others must not learn of it. */
  | { readonly kind: "write"; readonly isPrivate: boolean }
  /** A call for a transaction or a receipt by hash. */
  | { readonly kind: "lookup"; readonly hash: string; readonly isReceipt: boolean }
  /** It asks for the nonce after all pending transactions of a sender. */
  | { readonly kind: "nonce"; readonly sender: string };

const RECEIPT = "eth_getTransactionReceipt";
const NONCE = "eth_getTransactionCount";
const LOOKUPS: ReadonlySet<string> = new Set(["eth_getTransactionByHash", RECEIPT]);
const PRIVATE_WRITES: ReadonlySet<string> = new Set([
  "eth_sendPrivateTransaction",
  "eth_sendPrivateRawTransaction",
]);
/** Names of methods that may have to do with one, beside those of the table. */
export const OF_TRANSACTIONS: ReadonlySet<string> = new Set([...LOOKUPS, NONCE, ...PRIVATE_WRITES]);
const HASH = /^"(0x[0-9a-fA-F]{64})"$/;
const ADDRESS = /^"(0x[0-9a-fA-F]{40})"$/;
const RAW = /^"0x(?:[0-9a-fA-F]{2})+"$/;

/** Whether a call hands in a transaction whose hash it is answered with, or its receipt. */
export function handsInTransaction({ method, methodName }: Call): boolean {
  if (method.transaction === null) return PRIVATE_WRITES.has(methodName);
  return method.transaction !== "other";
}

/** What a call has to do with transactions; null = nothing. Letters of hex are in lower case. */
export function transactionCallOf(call: Call): TransactionCall | null {
  const { methodName, block } = call;
  if (handsInTransaction(call)) return { kind: "write", isPrivate: PRIVATE_WRITES.has(methodName) };
  if (LOOKUPS.has(methodName)) {
    const hash = first(call, HASH);
    return hash === null ? null : { kind: "lookup", hash, isReceipt: methodName === RECEIPT };
  }
  if (methodName !== NONCE || block.kind !== "tag" || block.tag !== "pending") return null;
  const sender = first(call, ADDRESS);
  return sender === null ? null : { kind: "nonce", sender };
}

/** The raw transaction that a call hands in; null = it has none that can be read. */
export function rawTransactionIn({ body, params, methodName }: Call): Buffer | null {
  const span = elementOf(body, params);
  if (span === null) return null;
  const raw =
    body[span.start] === OPEN_OBJECT && PRIVATE_WRITES.has(methodName)
      ? membersOf(body, span)?.get("tx")
      : span;
  const text = raw === undefined ? "" : body.toString("latin1", raw.start, raw.end);
  return RAW.test(text) ? Buffer.from(text.slice(3, -1), "hex") : null;
}

/** The first parameter where it has a form. */
function first({ body, params }: Call, form: RegExp): string | null {
  const span = elementOf(body, params);
  if (span === null) return null;
  return form.exec(body.toString("latin1", span.start, span.end))?.[1]?.toLowerCase() ?? null;
}

function elementOf(body: Buffer, params: Span | undefined): Span | null {
  if (params === undefined || body[params.start] !== OPEN_ARRAY) return null;
  return elementAt(body, params.start, params.end, 0);
}
