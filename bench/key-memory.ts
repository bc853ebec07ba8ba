// Measures the memory of cached keys: a store with many keys, each with an account of its own, all
// looked up once. A process of its own; answers with bytes per key.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AddressLimit } from "../src/core/billing/address-limit.ts";
import { KEY_CACHE_LIMITS, KeyCache } from "../src/hosted/keys/key-cache.ts";
import { realRuntime } from "../src/runtime.ts";
import { digestOf, hashOf, newId, newSecret, prefixOf } from "../src/secrets/secret.ts";
import { openStore, type Store } from "../src/shared/store/store.ts";

const KEYS = 200_000;
const CHUNK = 1_000;

const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
try {
  const store = await openStore({ url: "", dataDir: dir });
  const keyCache = new KeyCache({
    store,
    runtime: realRuntime,
    credit: { refresh() {}, evict() {} },
    misses: new AddressLimit({ perSecond: 1, burst: 1 }),
    limits: KEY_CACHE_LIMITS,
    onError: (error) => process.stderr.write(`${String(error)}\n`),
  });
  const before = heldBytes();
  for (let done = 0; done < KEYS; done += CHUNK) {
    const secrets = Array.from({ length: CHUNK }, () => newSecret("key"));
    await insert(store, secrets);
    for (const secret of secrets)
      await new Promise<void>(
        (resolve) => void keyCache.find(digestOf(secret), "", () => resolve()),
      );
  }
  const bytes = heldBytes() - before;
  process.stdout.write(
    `${keyCache.size} keys of as many accounts in memory: ${(bytes / 1e6).toFixed(1)} MB, ` +
      `${Math.round(bytes / keyCache.size)} bytes each\n`,
  );
  await store.close();
} finally {
  rmSync(dir, { recursive: true, force: true });
}

/** Inserts rows as `createAnonymousKey` does, many at a time. */
async function insert(store: Store, secrets: readonly string[]): Promise<void> {
  const at = BigInt(Date.now());
  const rows = secrets.map((secret) => ({
    secret,
    key: newId("key", Number(at)),
    account: newId("acc", Number(at)),
  }));
  await store.transaction(async (tx) => {
    const nothing = {
      funded_n: 0n,
      first_paid_at: null,
      exhausted_at: null,
      merged_into: null,
      created_at: at,
    };
    await tx
      .insertInto("account")
      .values(
        rows.map((row) => ({
          id: row.account,
          kind: "anonymous" as const,
          balance_n: 0n,
          ...nothing,
        })),
      )
      .execute();
    const free = {
      agent_id: null,
      name: "",
      default_profile: null,
      allowed_profiles: null,
      revision: 1n,
      created_at: at,
      revoked_at: null,
    };
    await tx
      .insertInto("api_key")
      .values(
        rows.map((row) => ({
          id: row.key,
          account_id: row.account,
          prefix: prefixOf(row.secret),
          ...free,
        })),
      )
      .execute();
    await tx
      .insertInto("key_secret")
      .values(
        rows.map((row) => ({
          secret_hash: hashOf(row.secret),
          key_id: row.key,
          valid_until: null,
          created_at: at,
        })),
      )
      .execute();
  });
}

function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
