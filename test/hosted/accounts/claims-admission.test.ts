// The gate after a claim: the caller of a claimed key is served by its new account at once, out of
// the same buckets as the account's other keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressLimit } from "../../../src/core/billing/address-limit.ts";
import { claimKey } from "../../../src/hosted/accounts/claim-links.ts";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { deleteKey } from "../../../src/hosted/keys/change.ts";
import { createAccount, createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import { KEY_CACHE_LIMITS, KeyCache } from "../../../src/hosted/keys/key-cache.ts";
import type { KeyContext } from "../../../src/hosted/keys/key-context.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import { digestOf } from "../../../src/secrets/secret.ts";
import { openCredit } from "../../fakes/credit.ts";
import { quiet } from "../../fakes/quiet.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";

const GRANT_N = 25_000_000n;

eachStore(({ engine, open }) => {
  test(
    "a claimed key shares payer and buckets with its account, and gives back what its old one " +
      `had leased (${engine})`,
    async (t) => {
      const store = await open(t);
      const runtime = simulatedWorld(1);
      const fail = (error: unknown) => assert.fail(String(error));
      const settings = { flushIntervalMs: 1_000, nodeTimeoutMs: 30_000, minSliceN: 500_000 };
      const credit = await openCredit({
        store,
        runtime,
        node: { id: "n", region: "" },
        settings,
        onError: fail,
      });
      const misses = new AddressLimit({ perSecond: 1, burst: 9 });
      const keyCache = new KeyCache({
        store,
        runtime,
        credit,
        misses,
        limits: KEY_CACHE_LIMITS,
        onError: fail,
      });
      const key = await createAnonymousKey(store, { name: "", grantN: GRANT_N }, runtime.wallMs());
      const person = await createAccount(store, UNCHOSEN, runtime.wallMs());
      const [caller, owner] = [
        await holderOf(keyCache, key.secret),
        await holderOf(keyCache, person.secret),
      ];
      const before = caller.account;
      before.fullAtMs = new Map([
        ["managed", 5],
        ["public", 5],
      ]);
      await keyCache.changed(new Set([key.id]));
      assert.equal(caller.account, before, "a key that was only read again keeps its buckets");
      const wallet = credit.wallet(key.accountId);
      credit.hold(wallet, 5_000);
      await new Promise<void>((resolve) => void credit.refilled(wallet, resolve));
      assert.ok(credit.hold(wallet, 5_000), "something is leased");
      const claimedAtMs = runtime.now();
      const told: Promise<void>[] = [];
      const changes = {
        key: () => undefined,
        account: (id: string) => void told.push(keyCache.changed(new Set([id]))),
      };
      const owned = {
        kind: "owner",
        accountId: person.accountId,
        profiles: null,
        manages: true,
        expiresAtMs: null,
      } as const;
      const closed: string[] = [];
      keyCache.addSocket(caller, {
        profile: "premium",
        custom: false,
        close: (reason) => closed.push(reason),
      });
      const done = await claimKey(
        { store, changes, maxKeys: 5, nowMs: runtime.wallMs() },
        key.secret,
        owned,
      );
      assert.ok(typeof done === "object");
      await Promise.all(told);
      assert.equal(caller.account, owner.account, "one payer, and so one set of buckets");
      assert.equal(caller.account.kind, "account");
      assert.equal(await holderOf(keyCache, key.secret), caller);
      assert.deepEqual(closed, [], "its sockets go on");
      credit.settle(wallet, {
        keyId: key.id,
        method: "eth_call",
        cu: 1,
        heldN: 5_000,
        chargeN: 5_000,
        freeCu: 0,
      });
      const leases = () => store.db.selectFrom("credit_lease").selectAll().execute();
      for (; (await leases()).length > 0; await quiet()) {
        assert.ok(
          runtime.now() - claimedAtMs < 20_000,
          "the lease is returned within seconds, not when it was idle for a minute",
        );
        runtime.advance(1_000);
      }
      const rows = await store.db.selectFrom("account").select(["id", "balance_n"]).execute();
      const left = new Map(rows.map((it) => [it.id, it.balance_n]));
      assert.deepEqual(
        [left.get(key.accountId), left.get(person.accountId)],
        [0n, GRANT_N - 5_000n],
      );
      assert.equal(keyCache.size, 2);
      await deleteKey(
        {
          store,
          changes: { ...changes, key: (id) => void told.push(keyCache.changed(new Set([id]))) },
          nowMs: runtime.wallMs(),
        },
        { id: key.id, scope: owned },
      );
      await Promise.all(told);
      assert.deepEqual(
        [closed, keyCache.size],
        [["key_revoked"], 1],
        "the account ends it like any key of its own",
      );
      assert.equal((await holderOf(keyCache, person.secret)).account, owner.account);
      await credit.close();
      assert.deepEqual(await audit(store), []);
    },
  );
});

function holderOf(keyCache: KeyCache, secret: string): Promise<KeyContext> {
  const digest = digestOf(secret);
  return new Promise((resolve, reject) => {
    const take = (found: ReturnType<KeyCache["identify"]>): void =>
      found?.kind === "key" ? resolve(found) : reject(new Error("nobody"));
    const known = keyCache.identify(secret, digest);
    if (known === null) keyCache.find(digest, "192.0.2.1", take);
    else take(known);
  });
}
