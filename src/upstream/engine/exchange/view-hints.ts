// What processes of one service tell each other so that a caller has one view of the chain at all
// of them: tips, and transactions that were accepted. Hints of other nodes are parsed: they may run
// another version.
import { isRecord, isText } from "../../../core/fields.ts";
import type { TipBlock } from "../../../core/provider/blocks/served-tip.ts";
import { isHeight as isSafeHeight } from "../../../core/rpc/block-height.ts";
import type { Topic } from "../../../core/workers/bus.ts";
import { type AcceptedMessage, MAX_RAW_BYTES } from "./accepted-transactions.ts";

/** The newest block that a process serves of a set. */
export interface TipMessage extends TipBlock, Pick<AcceptedMessage, "set" | "chainId"> {}

/** What one process tells the others. */
export type ViewHint =
  | ({ readonly kind: "tip" } & TipMessage)
  | ({ readonly kind: "transaction" } & AcceptedMessage)
  /** It has just begun, and knows of no transaction. */
  | { readonly kind: "hello" };

const MAX_TEXT = 512;
const MAX_PROVIDERS = 16;
const HASH = /^0x[0-9a-f]{64}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;

/** Hints on the bus between workers. */
export const VIEW_HINTS: Topic<ViewHint> = { name: "view.hint" };

/** A hint as text, for those who are reached by texts alone. */
export function hintText(hint: ViewHint): string {
  return JSON.stringify(
    hint.kind === "transaction" ? { ...hint, raw: hint.raw?.toString("base64") ?? null } : hint,
  );
}

/** Reads such a text; null = it is none of this version. */
export function hintOf(text: string): ViewHint | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(value)) return null;
  const { raw } = value;
  return parseHint(typeof raw === "string" ? { ...value, raw: Buffer.from(raw, "base64") } : value);
}

function parseHint(value: unknown): ViewHint | null {
  if (!isRecord(value)) return null;
  const { kind, set, chainId } = value;
  if (kind === "hello") return { kind };
  if (!isText(set, MAX_TEXT) || !isHeight(chainId)) return null;
  if (kind === "tip") return tipIn(value, { set, chainId });
  return kind === "transaction" ? transactionIn(value, { set, chainId }) : null;
}

type Place = Pick<AcceptedMessage, "set" | "chainId">;

function tipIn({ number, hash }: Readonly<Record<string, unknown>>, place: Place): ViewHint | null {
  if (!isHeight(number) || !(hash === null || isForm(hash, HASH))) return null;
  return { kind: "tip", ...place, number, hash };
}

function transactionIn(value: Readonly<Record<string, unknown>>, place: Place): ViewHint | null {
  const { hash, sender, nonce, providers, caller, account, isPrivate, ageMs } = value;
  const raw = rawIn(value["raw"]);
  if (!isForm(hash, HASH) || raw === undefined || typeof isPrivate !== "boolean") return null;
  if (!isText(caller, MAX_TEXT) || !isText(account, MAX_TEXT) || !areTexts(providers)) return null;
  if (typeof ageMs !== "number" || !(ageMs >= 0)) return null;
  const about = { kind: "transaction", ...place, hash, raw, providers } as const;
  const known = { ...about, caller, account, isPrivate, ageMs };
  if (sender === null || nonce === null) return { ...known, sender: null, nonce: null };
  return isForm(sender, ADDRESS) && isHeight(nonce) ? { ...known, sender, nonce } : null;
}

/** Undefined = it is neither bytes nor null. */
function rawIn(value: unknown): Buffer | null | undefined {
  if (value === null) return null;
  return value instanceof Uint8Array && value.length <= MAX_RAW_BYTES
    ? Buffer.from(value)
    : undefined;
}

function isHeight(value: unknown): value is number {
  return typeof value === "number" && isSafeHeight(value);
}

function isForm(value: unknown, form: RegExp): value is string {
  return typeof value === "string" && form.test(value);
}

function areTexts(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length <= MAX_PROVIDERS &&
    value.every((text) => isText(text, MAX_TEXT))
  );
}
