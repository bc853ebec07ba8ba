// Checks records of the console that come from a file or from another process.
import { z } from "zod";
import type { LastingRecords } from "./memory-records.ts";
import {
  type ActionPage,
  type ActionQuery,
  type ConsoleSession,
  type OperatorAction,
  type OperatorCordon,
  type ProviderRef,
  RECORD_LIMITS,
} from "./records.ts";

const MAX_TEXT = 2_000;
const text = z.string().max(MAX_TEXT);
const timeMs = z.number().min(0);
const ref = z.strictObject({ profile: text, chain: text, provider: text });
const cordon = ref.extend({ reason: text.nullable(), actor: text, atMs: timeMs });
const action = z.strictObject({
  id: text,
  atMs: timeMs,
  actor: text,
  address: text,
  action: text,
  target: text.nullable(),
  detail: text.nullable(),
  outcome: z.enum(["done", "refused"]),
  node: text.nullable(),
});
const session = z.strictObject({
  idHash: text,
  role: z.enum(["operator", "account", "used_link"]),
  tokenRef: text,
  createdAtMs: timeMs,
  expiresAtMs: timeMs,
});
const lasting = z.strictObject({
  cordons: z.array(cordon).max(RECORD_LIMITS.cordons),
  actions: z.array(action).max(RECORD_LIMITS.actions),
});

const request = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("addSession"), session }),
  z.strictObject({ kind: z.literal("session"), idHash: text, nowMs: timeMs }),
  z.strictObject({ kind: z.literal("endSession"), idHash: text }),
  z.strictObject({ kind: z.literal("cordons") }),
  z.strictObject({ kind: z.literal("cordon"), cordon }),
  z.strictObject({ kind: z.literal("uncordon"), ref }),
  z.strictObject({ kind: z.literal("addAction"), action }),
  z.strictObject({
    kind: z.literal("actions"),
    query: z.strictObject({ limit: z.int().min(1).max(1_000), after: text.nullable() }),
  }),
]);
const answer = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("flag"), value: z.boolean() }),
  z.strictObject({ kind: z.literal("session"), value: session.nullable() }),
  z.strictObject({ kind: z.literal("cordons"), value: lasting.shape.cordons }),
  z.strictObject({
    kind: z.literal("actions"),
    value: z.strictObject({ actions: lasting.shape.actions, next: text.nullable() }),
  }),
]);

/** A call of another process to the records. */
export type RecordsRequest =
  | { readonly kind: "addSession"; readonly session: ConsoleSession }
  | { readonly kind: "session"; readonly idHash: string; readonly nowMs: number }
  | { readonly kind: "endSession"; readonly idHash: string }
  | { readonly kind: "cordons" }
  | { readonly kind: "cordon"; readonly cordon: OperatorCordon }
  | { readonly kind: "uncordon"; readonly ref: ProviderRef }
  | { readonly kind: "addAction"; readonly action: OperatorAction }
  | { readonly kind: "actions"; readonly query: ActionQuery };

/** What the call returned. */
export type RecordsAnswer =
  | { readonly kind: "flag"; readonly value: boolean }
  | { readonly kind: "session"; readonly value: ConsoleSession | null }
  | { readonly kind: "cordons"; readonly value: readonly OperatorCordon[] }
  | { readonly kind: "actions"; readonly value: ActionPage };

/** Null = no such call. */
export function parseRecordsRequest(value: unknown): RecordsRequest | null {
  return request.safeParse(value).data ?? null;
}

/** Null = no such answer. */
export function parseRecordsAnswer(value: unknown): RecordsAnswer | null {
  return answer.safeParse(value).data ?? null;
}

/** What a file holds; null = it was not written by this program. */
export function parseLastingRecords(value: unknown): LastingRecords | null {
  return lasting.safeParse(value).data ?? null;
}
