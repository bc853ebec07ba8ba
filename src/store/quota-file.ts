// Keeps what was spent of the credits of providers in a file of its own in `data_dir`, without a
// database: written whole, beside the old one, and put in its place.
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { QuotaRecord } from "../core/provider/quota.ts";

/** The name of the file. */
export const QUOTA_FILE = "provider-quotas.json";
const VERSION = 1;
const MAX_BYTES = 16_000_000;

const whole = z.int().min(0);
const file = z.object({
  version: z.literal(VERSION),
  providers: z.record(
    z.string().max(1_000),
    z.strictObject({ dayMs: whole, daySpent: whole, monthMs: whole, monthSpent: whole }),
  ),
});

/** What was kept; empty where nothing was. Throws where it cannot be read. */
export async function readQuotas(
  dataDir: string,
  name: string = QUOTA_FILE,
): Promise<ReadonlyMap<string, QuotaRecord>> {
  const text = await readFile(join(dataDir, name), "utf8").catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (text === null) return new Map();
  if (text.length > MAX_BYTES) throw new Error(`${name} is too long to be what svc wrote`);
  return new Map(Object.entries(file.parse(JSON.parse(text)).providers));
}

/** Replaces what was kept; the file is whole at every moment, also after a power cut. */
export async function writeQuotas(
  dataDir: string,
  records: ReadonlyMap<string, QuotaRecord>,
): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, QUOTA_FILE);
  const next = `${path}.next`;
  const handle = await open(next, "w", 0o600);
  try {
    await handle.writeFile(
      JSON.stringify({ version: VERSION, providers: Object.fromEntries(records) }),
    );
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, path);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
