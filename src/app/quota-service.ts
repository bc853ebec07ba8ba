// The credits of providers for the whole service: one process keeps what was spent, in `data_dir`,
// and hands credits out to itself or, over the bus, to the workers.
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import type { QuotaRecord } from "../core/provider/quota.ts";
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";
import type { Runtime } from "../runtime.ts";
import { QUOTA_FILE, readQuotas, writeQuotas } from "../store/quota-file.ts";
import { createQuotaLedger } from "../upstream/budget/quota-ledger.ts";
import type { QuotaLease, QuotaRequest, QuotaSource } from "../upstream/budget/quota-source.ts";

/** What the ledger of a service is opened with. */
export interface QuotaLedgerPlace {
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly dataDir: string;
}

/** Opens the ledger of this service. */
export async function openQuotaLedger(place: QuotaLedgerPlace): Promise<QuotaSource> {
  const { runtime, log, dataDir } = place;
  return createQuotaLedger({
    runtime,
    records: await recordsIn(place),
    keep: (records) => writeQuotas(dataDir, records),
    onError: (error) =>
      log.error(
        { problem: textOf(error) },
        "what was spent of the credits of providers cannot be kept in data_dir: limits hold until " +
          "the service ends",
      ),
  });
}

/** What was kept; a file that cannot be read is put aside. */
async function recordsIn({
  log,
  dataDir,
}: QuotaLedgerPlace): Promise<ReadonlyMap<string, QuotaRecord>> {
  try {
    return await readQuotas(dataDir);
  } catch (error) {
    const file = join(dataDir, QUOTA_FILE);
    await rename(file, `${file}.unreadable`).catch(() => {});
    log.error(
      { problem: textOf(error) },
      `${QUOTA_FILE} in data_dir cannot be read and was put aside: daily and monthly limits of ` +
        "providers are counted from zero",
    );
    return new Map();
  }
}

/**
 * Has what this node spent by itself added to what nodes share, and puts the file aside. Where that
 * fails, the file is back for the next start: counted twice is safe, not at all is not.
 */
export async function moveKeptQuotas(
  dataDir: string,
  add: (key: string, record: QuotaRecord) => Promise<void>,
): Promise<void> {
  const file = join(dataDir, QUOTA_FILE);
  const takenFile = `${file}.moved`;
  // One of several processes can: the others find no file.
  const isTaken = await rename(file, takenFile).then(
    () => true,
    () => false,
  );
  if (!isTaken) return;
  try {
    const kept = await readQuotas(dataDir, `${QUOTA_FILE}.moved`);
    for (const [key, record] of kept) await add(key, record);
  } catch (error) {
    await rename(takenFile, file).catch(() => {});
    throw error;
  }
}

interface GiveBack {
  readonly key: string;
  readonly unspent: QuotaLease;
}

const LEASE: QuestionTopic<QuotaRequest, QuotaLease> = { name: "quota-lease" };
const GIVE_BACK: QuestionTopic<GiveBack, boolean> = { name: "quota-give-back" };
const ANSWER_MS = 2_000;

/** Hands credits out to workers. */
export function serveQuotas(bus: Bus, ledger: QuotaSource): void {
  bus.serve(LEASE, async (request) => {
    const lease = await ledger.lease(request);
    // The ledger always answers; the port allows for those that do not.
    return lease ?? { dayMs: 0, daySpent: 0, monthMs: 0, monthSpent: 0, credits: 0 };
  });
  bus.serve(GIVE_BACK, ({ key, unspent }) => {
    ledger.giveBack(key, unspent);
    return true;
  });
}

/** Credits from the process that keeps the ledger. */
export function quotasOver(bus: Bus): QuotaSource {
  const underWay = new Set<Promise<unknown>>();
  return {
    async lease(message) {
      const reply = await bus.request(SUPERVISOR, { topic: LEASE, message, timeoutMs: ANSWER_MS });
      return reply.ok ? reply.value : null;
    },
    giveBack(key, unspent) {
      const message = { key, unspent };
      const returning: Promise<unknown> = bus
        .request(SUPERVISOR, { topic: GIVE_BACK, message, timeoutMs: ANSWER_MS })
        .then(() => underWay.delete(returning));
      underWay.add(returning);
    },
    async close() {
      await Promise.all(underWay);
    },
  };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
