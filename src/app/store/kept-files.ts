// Takes over the files in `data_dir` that held operator records and provider credits before every
// service had a store. Each file is renamed first, so one of several processes takes it; a file
// that cannot be taken over is put back for the next start.
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { z } from "zod";
import { errorText } from "../../core/fields.ts";
import { createStoredRecords, RECORD_LIMITS } from "../../hosted/operator/stored-records.ts";
import { addCredits } from "../../shared/leases/stored-quotas.ts";
import type { Store } from "../../shared/store/store.ts";

const MAX_BYTES = 16_000_000;
const MAX_TEXT = 2_000;
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

/** Writes the contents of both files, where they exist, to a store. */
export async function takeOverFiles(
  store: Store,
  { dataDir, log }: { readonly dataDir: string; readonly log: Pick<Logger, "error"> },
): Promise<void> {
  const takeOver = (name: string, write: (value: unknown) => Promise<void>) =>
    takeOverFile(join(dataDir, name), write).catch((error: unknown) =>
      log.error(
        { problem: errorText(error), file: name },
        "a file of an earlier version in data_dir cannot be taken over: what it holds does not " +
          "count until a start that can read it",
      ),
    );
  await takeOver("provider-quotas.json", async (value) => {
    const { providers } = quotaFile.parse(value);
    for (const [key, record] of Object.entries(providers)) await addCredits(store, key, record);
  });
  await takeOver("operator.json", async (value) => {
    const { cordons, actions } = operatorFile.parse(value);
    const records = createStoredRecords(store);
    for (const cordon of cordons) await records.cordon(cordon);
    for (const action of actions) await records.addAction(action);
  });
}

async function takeOverFile(path: string, write: (value: unknown) => Promise<void>): Promise<void> {
  const taken = `${path}.moved`;
  const isTaken = await rename(path, taken).then(
    () => true,
    () => false,
  );
  if (!isTaken) return;
  try {
    const content = await readFile(taken, "utf8");
    if (content.length > MAX_BYTES) throw new Error("it is too long to be what svc wrote");
    await write(JSON.parse(content));
  } catch (error) {
    await rename(taken, path).catch(() => {});
    throw error;
  }
}
