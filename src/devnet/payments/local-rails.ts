// Where the local payment chains of a running service are, left in its data directory for
// `svc audit`. No secret stands in it.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RAIL_KINDS, type RailSettings } from "../../payments/rails/rails.ts";

/** What it takes to look at what a rail has received. */
export type LocalRail = Pick<
  RailSettings,
  "kind" | "rpcUrl" | "chainId" | "token" | "recipient" | "confirmations" | "local"
>;

const token = z.object({ address: z.string(), name: z.string(), version: z.string() });
const rails = z
  .array(
    z.object({
      kind: z.enum(RAIL_KINDS),
      rpcUrl: z.url(),
      chainId: z.int(),
      token,
      recipient: z.string(),
      confirmations: z.int(),
      local: z.literal(true),
    }),
  )
  .max(8);

/** Leaves them; the returned function takes them away again. */
export function leaveLocalRails(dataDir: string, all: readonly RailSettings[]): () => void {
  const path = pathIn(dataDir);
  const shown = all.map(({ kind, rpcUrl, chainId, token, recipient, confirmations, local }) => ({
    kind,
    rpcUrl,
    chainId,
    token,
    recipient,
    confirmations,
    local,
  }));
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(path, JSON.stringify(shown), { mode: 0o600 });
  return () => rmSync(path, { force: true });
}

/** Reads them; empty where no service has left any, or something else lies there. */
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
