// Who the secrets belong to, on both engines: found once, forgotten when they change, never
// believed longer than they hold, and bounded for any caller.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressLimit } from "../../../src/core/billing/address-limit.ts";
import { deleteKey, patchKey, rotateKey } from "../../../src/hosted/keys/change.ts";
import { addKey, createAccount, createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import {
  KEY_CACHE_LIMITS,
  KeyCache,
  type KeyCacheLimits,
} from "../../../src/hosted/keys/key-cache.ts";
import type { KeyContext } from "../../../src/hosted/keys/key-context.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import { digestOf, newSecret } from "../../../src/secrets/secret.ts";
import type { Contact } from "../../../src/shared/changes/contact.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";
import { type Ending, eachStore } from "../../fakes/stores.ts";

type Found = KeyContext | { readonly kind: "fault"; readonly code: string };

interface Fixture {
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly keyCache: KeyCache;
  readonly woken: string[];
  readonly errors: unknown[];
  /** Holds the store's answers to look-ups back until the result is called. */
  silence(): () => void;
  identify(secret: string): string;
  find(secret: string, address?: string): Promise<Found>;
  /** A key of a new account. */
  key(): Promise<{ readonly secret: string; readonly id: string; readonly accountId: string }>;
  readonly parts: Parameters<typeof rotateKey>[0];
}

async function createFixture(
  t: Ending,
  open: (t: Ending) => Promise<Store>,
  limits: Partial<KeyCacheLimits> = {},
): Promise<Fixture> {
  const store = await open(t);
  const runtime = simulatedWorld(1);
  const woken: string[] = [];
  const errors: unknown[] = [];
  const misses = new AddressLimit({ perSecond: 0.5, burst: 30 });
  const credit = { refresh: (id: string) => void woken.push(id), evict: () => {} };
  let silence: Promise<void> | null = null;
  const db = store.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      await silence;
      return result;
    },
  });
  const keyCache = new KeyCache({
    store: { db },
    runtime,
    credit,
    misses,
    limits: { ...KEY_CACHE_LIMITS, ...limits },
    onError: (error) => errors.push(error),
  });
  const changes = {
    key: (id: string) => keyCache.changed(new Set([id])),
    account: (id: string) => keyCache.changed(new Set([id])),
  };
  return {
    store,
    runtime,
    keyCache,
    woken,
    errors,
    silence() {
      const { promise, resolve } = Promise.withResolvers<void>();
      silence = promise;
      return () => {
        silence = null;
        resolve();
      };
    },
    identify(secret) {
      const it = keyCache.identify(secret, digestOf(secret));
      return it === null ? "look up" : it.kind === "fault" ? it.code : it.keyId;
    },
    find: (secret, address = "10.0.0.1") =>
      new Promise((resolve) => void keyCache.find(digestOf(secret), address, resolve)),
    key: () => createAccount(store, { ...UNCHOSEN, name: "k" }, runtime.wallMs()),
    get parts() {
      return { store, nowMs: runtime.wallMs(), changes };
    },
  };
}

function held(it: Found): KeyContext {
  assert.ok(it.kind === "key", it.kind === "fault" ? it.code : "");
  return it;
}

eachStore(({ engine, open }) => {
  test(`a secret is looked up once and known from then on, as the same holder (${engine})`, async (t) => {
    const { identify, find, key, keyCache } = await createFixture(t, open);
    const { secret, id } = await key();
    assert.equal(identify(secret), "look up");
    const [first, second] = await Promise.all([find(secret), find(secret)]);
    assert.equal(first, second);
    assert.deepEqual(
      [identify(secret), held(first).defaultProfile, keyCache.size],
      [id, "premium", 1],
    );
  });

  test(`keys of one account share who pays, and so its buckets; those of others do not (${engine})`, async (t) => {
    const { store, runtime, find, key } = await createFixture(t, open);
    const one = await key();
    const two = await addKey(
      store,
      { accountId: one.accountId, agentId: null, ...UNCHOSEN, maxKeys: 9 },
      runtime.wallMs(),
    );
    assert.ok(two.kind === "new_key");
    const stranger = await key();
    const [a, b, c] = [
      held(await find(one.secret)),
      held(await find(two.secret)),
      held(await find(stranger.secret)),
    ];
    assert.equal(a.account, b.account);
    assert.notEqual(a.account, c.account);
  });

  test(`a change is seen in what is kept, at once, and ends the sockets it has to (${engine})`, async (t) => {
    const { identify, find, key, keyCache, parts, runtime } = await createFixture(t, open);
    const { secret, id, accountId } = await key();
    const keyContext = held(await find(secret));
    const closed: string[] = [];
    keyCache.addSocket(keyContext, {
      profile: "premium",
      custom: false,
      close: (reason) => void closed.push(reason),
    });
    const ref = { id, scope: { accountId, profiles: null } };
    await patchKey(parts, ref, { input: { name: "other" }, known: ["public", "premium"] });
    assert.deepEqual(closed, [], "a new name ends nothing");
    const rotated = await rotateKey(parts, ref, 1_000);
    assert.ok(!("code" in rotated));
    assert.equal(identify(secret), id, "the overlap");
    runtime.jump(1_000);
    assert.equal(identify(secret), "key_revoked");
    assert.equal(held(await find(rotated.secret)).keyId, id);
    await deleteKey(parts, ref);
    assert.notEqual(identify(rotated.secret), id);
    assert.deepEqual(closed, ["key_revoked"]);
  });

  test(`calls get the view that their key says, from its change on, here and elsewhere (${engine})`, async (t) => {
    const { store, find, key, keyCache, parts } = await createFixture(t, open);
    const { secret, id, accountId } = await key();
    const keyContext = held(await find(secret));
    assert.equal(keyContext.consistency, null);
    const ref = { id, scope: { accountId, profiles: null } };
    await patchKey(parts, ref, { input: { consistency: "caller" }, known: ["premium"] });
    assert.equal(keyContext.consistency, "caller");
    await store.db.updateTable("api_key").set({ consistency: "off" }).execute();
    void keyCache.changed(new Set([id]));
    assert.equal(held(await find(secret)).consistency, "off");
    assert.equal(keyContext.consistency, "off", "also of sockets that are open");
  });

  test(`a key that is deleted while it is being looked up is not believed afterwards (${engine})`, async (t) => {
    const { identify, find, key, parts } = await createFixture(t, open);
    for (let n = 0; n < 10; n++) {
      const { secret, id, accountId } = await key();
      const looking = find(secret);
      await deleteKey(parts, { id, scope: { accountId, profiles: null } });
      await looking;
      assert.notEqual(identify(secret), id);
    }
  });

  test(
    "what is nobody's is remembered for ten seconds, and who tries too many has to wait; keys " +
      `that are known do not (${engine})`,
    async (t) => {
      const { identify, find, key, runtime } = await createFixture(t, open);
      const { secret, id } = await key();
      await find(secret);
      const wrong = newSecret("key");
      assert.equal((await find(wrong)).kind, "fault");
      assert.equal(identify(wrong), "unauthorized");
      runtime.advance(10_000);
      assert.equal(identify(wrong), "look up");
      const codes: string[] = [];
      for (let n = 0; n < 40; n++) {
        const it = await find(newSecret("key"));
        codes.push(it.kind === "fault" ? it.code : "");
      }
      assert.deepEqual([...new Set(codes)], ["unauthorized", "rate_limit_exceeded"]);
      assert.equal(identify(secret), id);
      const elsewhere = await find(newSecret("key"), "10.0.0.2");
      assert.ok(elsewhere.kind === "fault" && elsewhere.code === "unauthorized");
    },
  );

  test(`no more are kept than may be, the oldest go, and one that went is found again (${engine})`, async (t) => {
    const { store, runtime, find, identify, keyCache } = await createFixture(t, open, {
      maxKeys: 5,
      maxUnknown: 5,
    });
    const secrets: string[] = [];
    for (let n = 0; n < 12; n++) {
      const made = await createAnonymousKey(store, { name: "", grantN: 0n }, runtime.wallMs());
      secrets.push(made.secret);
      await find(made.secret);
      assert.ok(keyCache.size <= 5);
    }
    assert.equal(identify(secrets[0] ?? ""), "look up");
    held(await find(secrets[0] ?? ""));
  });

  test(`a key that another node changed is refused until it was read again, also while nothing is heard (${engine})`, async (t) => {
    const { store, identify, find, key, keyCache } = await createFixture(t, open);
    const { secret, id } = await key();
    const other = await key();
    await Promise.all([find(secret), find(other.secret)]);
    await store.db.schema.alterTable("key_secret").renameTo("elsewhere").execute();
    void keyCache.changed(new Set([id]));
    assert.equal(identify(secret), "look up", "from this call on");
    assert.equal(identify(other.secret), other.id);
    keyCache.setContact("silent");
    keyCache.recheck();
    const [changed, good] = [await find(secret), await find(other.secret)];
    assert.equal(changed.kind === "fault" && changed.code, "unavailable");
    assert.equal(held(good).keyId, other.id, "a key of which no change is known goes on");
    await store.db.schema.alterTable("elsewhere").renameTo("key_secret").execute();
    assert.equal(held(await find(secret)).keyId, id);
    assert.equal(identify(secret), id);
  });

  test(`a store that is silent is waited for once, whichever key is asked for (${engine})`, async (t) => {
    const { runtime, silence, identify, find, key, keyCache } = await createFixture(t, open);
    const [first, second, changed] = [await key(), await key(), await key()];
    for (const { secret } of [first, second, changed]) await find(secret);
    const end = silence();
    keyCache.setContact("silent");
    keyCache.recheck();
    const stranger = newSecret("key");
    const waiting = [find(first.secret), find(stranger)];
    runtime.advance(1_999);
    assert.equal(identify(second.secret), "look up", "nobody has waited in vain yet");
    runtime.advance(1);
    const [good, unknown] = await Promise.all(waiting);
    assert.equal(good && held(good).keyId, first.id);
    assert.equal(unknown?.kind === "fault" && unknown.code, "unavailable");
    assert.equal(identify(second.secret), second.id);
    void keyCache.changed(new Set([changed.id]));
    assert.equal(identify(changed.secret), "look up");
    let again = "";
    keyCache.find(digestOf(stranger), "10.0.0.1", (found) => {
      again = found.kind === "fault" ? found.code : "";
    });
    assert.equal(again, "unavailable", "at once, though the look-up is still under way");
    end();
    held(await find(changed.secret));
    assert.equal(identify(second.secret), "look up", "as the store answers");
    assert.equal(held(await find(second.secret)).keyId, second.id);
  });

  test(`a process that stood still uses no key as it was before it asked, before its timers run (${engine})`, async (t) => {
    const { store, identify, find, key, keyCache } = await createFixture(t, open);
    const { secret, id } = await key();
    await find(secret);
    let now: Contact = "heard";
    keyCache.watch(() => now);
    assert.equal(identify(secret), id);
    now = "silent";
    assert.equal(identify(secret), "look up");
    assert.equal(held(await find(secret)).keyId, id);
    await store.db.schema.alterTable("key_secret").renameTo("elsewhere").execute();
    assert.equal(identify(secret), "look up");
    assert.equal(held(await find(secret)).keyId, id, "known good, and the store does not answer");
    const stranger = await find(newSecret("key"));
    assert.equal(stranger.kind === "fault" && stranger.code, "unavailable");
    now = "cut_off";
    assert.equal(identify(secret), "unavailable");
    now = "heard";
    assert.equal(identify(secret), id);
  });

  test(`sockets of keys that other nodes revoked are closed, all of them, some at a time (${engine})`, async (t) => {
    const { store, find, key, keyCache, parts } = await createFixture(t, open);
    const revoked = new Set<string>();
    const closed = Promise.withResolvers<void>();
    let left = 0;
    for (let n = 0; n < 20; n++) {
      const { secret, id } = await key();
      left++;
      keyCache.addSocket(held(await find(secret)), {
        profile: "premium",
        custom: false,
        close(reason) {
          assert.equal(reason, "key_revoked");
          if (--left === 0) closed.resolve();
        },
      });
      revoked.add(id);
    }
    await store.db
      .updateTable("api_key")
      .set({ revoked_at: BigInt(parts.nowMs) })
      .execute();
    for (const id of revoked) void keyCache.changed(new Set([id]));
    await closed.promise;
  });

  test(`a store that fails is told as unavailable and not remembered as an answer (${engine})`, async (t) => {
    const { store, identify, find, key, errors } = await createFixture(t, open);
    const { secret } = await key();
    await store.db.schema.alterTable("key_secret").renameTo("elsewhere").execute();
    const it = await find(secret);
    assert.deepEqual([it.kind === "fault" && it.code, errors.length], ["unavailable", 1]);
    await store.db.schema.alterTable("elsewhere").renameTo("key_secret").execute();
    assert.equal(identify(secret), "look up");
    held(await find(secret));
  });
});
