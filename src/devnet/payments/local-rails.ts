// Stores where the local payment chains of a running service are, as a file in its data directory
// for `svc audit`. It contains no secret.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RAIL_KINDS, type RailSettings } from "../../payments/rails/rails.ts";

const token = z.object({ address: z.string(), name: z.string(), version: z.string() });
const rail = z.object({
  kind: z.enum(RAIL_KINDS),
  rpcUrl: z.url(),
  chainId: z.int(),
  token,
  recipient: z.string(),
  confirmations: z.int(),
  local: z.literal(true),
});
const rails = z.array(rail).max(8);

/** What is needed to read the money that a local rail received. */
export type LocalRail = Readonly<z.output<typeof rail>>;

/** Writes the file; the returned function removes it. */
export function leaveLocalRails(dataDir: string, all: readonly RailSettings[]): () => void {
  const path = pathIn(dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  // Fields without a shape are left out, the keys of wallets among them.
  writeFileSync(path, JSON.stringify(rails.parse(all)), { mode: 0o600 });
  return () => rmSync(path, { force: true });
}

/** Reads the file; empty if there is none or its format is unknown. */
export function readLocalRails(dataDir: string): readonly LocalRail[] {
  try {
    return rails.parse(JSON.parse(readFileSync(pathIn(dataDir), "utf8")));
  } catch {
    return [];
  }
}

function pathIn(dataDir: string): string {
  return join(dataDir, "local-rails.json");
}
