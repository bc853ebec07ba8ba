// Checks records of the console that come from a file.
import { z } from "zod";
import type { LastingRecords } from "./memory-records.ts";
import { RECORD_LIMITS } from "./records.ts";

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
const lasting = z.strictObject({
  cordons: z.array(cordon).max(RECORD_LIMITS.cordons),
  actions: z.array(action).max(RECORD_LIMITS.actions),
});

/** What a file holds; null = it was not written by this program. */
export function parseLastingRecords(value: unknown): LastingRecords | null {
  return lasting.safeParse(value).data ?? null;
}
