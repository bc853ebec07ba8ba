// An account with many keys in a data directory, written before a service opens it.
import { insertAccount, insertKey } from "../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../src/hosted/keys/key-fields.ts";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import { openStore } from "../../src/shared/store/store.ts";

/** An account, and the token that reads it. */
export interface ManyKeys {
  readonly accountId: string;
  readonly token: string;
}

/** Writes the account into the embedded store of a directory, with keys named `key number N`. */
export async function writeManyKeys(dataDir: string, keys: number): Promise<ManyKeys> {
  const store = await openStore({ url: "", dataDir });
  const nowMs = Date.now();
  try {
    return await store.transaction(async (tx) => {
      const accountId = await insertAccount(tx, "account", nowMs);
      const access = { profiles: null, readOnly: false, expiresAtMs: null };
      const made = await insertManagementToken(tx, { accountId, name: "", ...access }, nowMs);
      for (let n = 0; n < keys; n++) {
        const row = { ...UNCHOSEN, accountId, agentId: made.agent.id, name: `key number ${n}` };
        await insertKey(tx, row, nowMs);
      }
      return { accountId, token: made.token };
    });
  } finally {
    await store.close();
  }
}
