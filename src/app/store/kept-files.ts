// Takes over the files in `data_dir` that held operator records and provider credits before every
// service had a store. What a file holds is written in one transaction with a mark, a job that is
// never due, so that neither another process nor a start after a crash writes it twice. Only then
// is the file renamed.
import { createHash } from "node:crypto";
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Transaction } from "kysely";
import type { Logger } from "pino";
import { z } from "zod";
import { errorText } from "../../core/fields.ts";
import { RECORD_LIMITS } from "../../hosted/operator/stored-records.ts";
import { addCredits } from "../../shared/leases/stored-quotas.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Tables } from "../../shared/store/tables.ts";

const MAX_BYTES = 16_000_000;
const MAX_TEXT = 2_000;
const NEVER_DUE = { due_at: BigInt(Number.MAX_SAFE_INTEGER), claimed_until: 0n };
const text = z.string().max(MAX_TEXT);
const timeMs = z.number().min(0);
const credits = z.int().min(0);

const quotaFile = z.object({
  version: z.literal(1),
  providers: z.record(
    z.string().max(1_000),
    z.strictObject({ dayMs: credits, daySpent: credits, monthMs: credits, monthSpent: credits }),
  ),
});

const operatorFile = z.strictObject({
  cordons: z
    .array(
      z.strictObject({
        profile: text,
        chain: text,
        provider: text,
        reason: text.nullable(),
        actor: text,
        atMs: timeMs,
      }),
    )
    .max(RECORD_LIMITS.cordons),
  actions: z
    .array(
      z.strictObject({
        id: text,
        atMs: timeMs,
        actor: text,
        address: text,
        action: text,
        target: text.nullable(),
        detail: text.nullable(),
        outcome: z.enum(["done", "refused"]),
        node: text.nullable(),
      }),
    )
    .max(RECORD_LIMITS.actions),
});

type Write = (tx: Transaction<Tables>, value: unknown) => Promise<void>;

/** What is done with the content of each file. */
const FILES: Readonly<Record<string, Write>> = {
  async "provider-quotas.json"(tx, value) {
    for (const [key, record] of Object.entries(quotaFile.parse(value).providers))
      await addCredits(tx, key, record);
  },
  async "operator.json"(tx, value) {
    const { cordons, actions } = operatorFile.parse(value);
    for (const { atMs, ...cordon } of cordons)
      await tx
        .insertInto("operator_cordon")
        .values({ ...cordon, created_at: BigInt(atMs) })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    for (const { atMs, ...action } of actions)
      await tx
        .insertInto("operator_action")
        .values({ ...action, created_at: BigInt(atMs) })
        .execute();
  },
};

/** Writes the contents of the files, where they exist, to a store. */
export async function takeOverFiles(
  store: Pick<Store, "transaction">,
  { dataDir, log }: { readonly dataDir: string; readonly log: Pick<Logger, "error"> },
): Promise<void> {
  for (const [name, write] of Object.entries(FILES))
    await takeOverFile(store, { dataDir, name, write }).catch((error: unknown) =>
      log.error(
        { problem: errorText(error), file: name },
        "a file of an earlier version in data_dir cannot be taken over: what it holds does not " +
          "count until a start that can read it",
      ),
    );
}

async function takeOverFile(
  store: Pick<Store, "transaction">,
  file: { readonly dataDir: string; readonly name: string; readonly write: Write },
): Promise<void> {
  const path = join(file.dataDir, file.name);
  const content = await readFile(path, "utf8").catch(() => null);
  if (content === null) return;
  if (content.length > MAX_BYTES) throw new Error("it is too long to be what svc wrote");
  const hash = createHash("sha256").update(content).digest("base64url");
  await store.transaction(async (tx) => {
    const { numInsertedOrUpdatedRows: marks } = await tx
      .insertInto("job")
      .values({ name: `take over ${file.name} ${hash}`, node_id: "", ...NEVER_DUE })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow();
    if (marks === 1n) await file.write(tx, JSON.parse(content));
  });
  // Another process may have renamed it already.
  await rename(path, `${path}.moved`).catch(() => {});
}
