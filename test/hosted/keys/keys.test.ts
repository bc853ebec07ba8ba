// Keys and their profiles on both engines: what a new one has, what pages of a list hold, what the
// books say.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { deleteKey, patchKey } from "../../../src/hosted/keys/change.ts";
import { addKey, createAccount, createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import { chosenProfiles, EVERY_PROFILE, isWithin } from "../../../src/hosted/keys/key-profiles.ts";
import { keyById, keyBySecret, listKeys } from "../../../src/hosted/keys/keys.ts";
import { hashOf, newId, newSecret } from "../../../src/secrets/secret.ts";
import { eachStore } from "../../fakes/stores.ts";

const NOW_MS = Date.UTC(2026, 5, 1);
const QUIET = { key: () => {}, account: () => {} };

eachStore(({ engine, open }) => {
  test(`an anonymous key has its grant, through the ledger and once (${engine})`, async (t) => {
    const store = await open(t);
    const { secret, id, accountId, token } = await createAnonymousKey(
      store,
      { name: "a", grantN: 25_000_000n },
      NOW_MS,
    );
    assert.equal(token, null);
    const key = await keyBySecret(store, secret, NOW_MS);
    assert.deepEqual(
      [key?.id, key?.type, key?.balanceN, key?.fundedN, key?.previousValidUntilMs],
      [id, "anonymous", 25_000_000n, 25_000_000n, null],
    );
    assert.deepEqual(
      await store.db.selectFrom("ledger_tx").select(["idem_key", "kind"]).execute(),
      [{ idem_key: `grant:${accountId}`, kind: "grant" }],
    );
    assert.equal(
      (await createAnonymousKey(store, { name: "", grantN: 0n }, NOW_MS)).prefix.length,
      12,
    );
    assert.deepEqual(await audit(store), []);
  });

  test(`credit that nodes hold counts as balance as far as it is not spent (${engine})`, async (t) => {
    const store = await open(t);
    const { id, accountId } = await createAnonymousKey(store, { name: "", grantN: 1_000n }, NOW_MS);
    await store.db
      .insertInto("node")
      .values({ id: "n", epoch: 2n, region: "", state: "alive", flush_seq: 0n, heartbeat_at: 0n })
      .execute();
    const lease = { account_id: accountId, node_id: "n", granted_n: 300n };
    await store.db
      .insertInto("credit_lease")
      .values([
        { ...lease, epoch: 1n, spent_n: 100n },
        { ...lease, epoch: 2n, spent_n: 0n },
      ])
      .execute();
    await store.db
      .updateTable("account")
      .set({ balance_n: 400n })
      .where("id", "=", accountId)
      .execute();
    assert.equal(
      (await keyById(store.db, id, { accountId, profiles: null }, NOW_MS))?.balanceN,
      900n,
    );
  });

  test(`a creation that fails half-way leaves nothing (${engine})`, async (t) => {
    const store = await open(t);
    await assert.rejects(createAnonymousKey(store, { name: "", grantN: 2n ** 70n }, NOW_MS));
    for (const table of ["account", "api_key", "key_secret", "ledger_tx"] as const)
      assert.deepEqual(await store.db.selectFrom(table).selectAll().execute(), []);
  });

  test(`a list goes through every key that works once, in the order they were made (${engine})`, async (t) => {
    const store = await open(t);
    const first = await createAccount(store, UNCHOSEN, NOW_MS);
    const ids = [first.id];
    for (let i = 1; i < 25; i++) {
      const made = await addKey(
        store,
        {
          accountId: first.accountId,
          agentId: null,
          ...UNCHOSEN,
          name: `${i}`,
          maxKeys: 25,
        },
        NOW_MS + i,
      );
      assert.equal(made.kind, "new_key");
      if (made.kind === "new_key") ids.push(made.id);
    }
    const scope = { accountId: first.accountId, profiles: null };
    await deleteKey({ store, changes: QUIET, nowMs: NOW_MS }, { id: ids[3] ?? "", scope });
    const seen: string[] = [];
    let after: string | undefined;
    for (let pages = 0; pages < 10; pages++) {
      const { keys, next } = await listKeys(store, scope, { limit: 5, after }, NOW_MS);
      seen.push(...keys.map((it) => it.id));
      if (next === null) break;
      after = next;
    }
    assert.deepEqual(
      seen,
      ids.filter((_, i) => i !== 3),
    );
    assert.deepEqual(
      (
        await listKeys(
          store,
          { ...scope, profiles: ["public"] },
          { limit: 5, after: undefined },
          NOW_MS,
        )
      ).keys,
      [],
    );
  });

  test(`a change that the store refuses is told to nobody (${engine})`, async (t) => {
    const store = await open(t);
    const { id, accountId } = await createAccount(store, UNCHOSEN, NOW_MS);
    const told: string[] = [];
    const parts = {
      store,
      changes: { ...QUIET, key: (it: string) => void told.push(it) },
      nowMs: NOW_MS,
    };
    const patch = { input: { name: "b" }, known: ["premium"] };
    const missing = await patchKey(
      parts,
      { id: newId("key", 1), scope: { accountId, profiles: null } },
      patch,
    );
    assert.ok("kind" in missing && missing.code === "not_found");
    const wrong = await patchKey(
      parts,
      { id, scope: { accountId, profiles: null } },
      { ...patch, input: { default_profile: "team" } },
    );
    assert.ok("kind" in wrong && wrong.code === "invalid_field");
    assert.deepEqual(told, []);
    await patchKey(parts, { id, scope: { accountId, profiles: null } }, patch);
    assert.deepEqual(told, [id]);
  });

  test(`the view of the chain of a key stays until it is set, and null takes it away (${engine})`, async (t) => {
    const store = await open(t);
    const chosen = { ...UNCHOSEN, consistency: "caller" } as const;
    const { id, accountId, secret } = await createAccount(store, chosen, NOW_MS);
    const scope = { accountId, profiles: null };
    const parts = { store, changes: QUIET, nowMs: NOW_MS };
    const patched = async (input: Parameters<typeof patchKey>[2]["input"]) => {
      const key = await patchKey(parts, { id, scope }, { input, known: ["premium"] });
      assert.ok(!("kind" in key));
      return [key.consistency, key.revision];
    };
    assert.equal((await keyBySecret(store, secret, NOW_MS))?.consistency, "caller");
    assert.deepEqual(await patched({ name: "b" }), ["caller", 2]);
    assert.deepEqual(await patched({ consistency: "caller" }), ["caller", 2], "no difference");
    assert.deepEqual(await patched({ consistency: "off" }), ["off", 3]);
    assert.deepEqual(await patched({ consistency: null }), [null, 4]);
    const { keys } = await listKeys(store, scope, { limit: 5, after: undefined }, NOW_MS);
    assert.deepEqual([keys[0]?.consistency, keys[0]?.name], [null, "b"]);
  });

  test(`a secret of nobody and a hash of a real one open nothing (${engine})`, async (t) => {
    const store = await open(t);
    const { secret } = await createAnonymousKey(store, { name: "", grantN: 1n }, NOW_MS);
    assert.equal(await keyBySecret(store, newSecret("key"), NOW_MS), null);
    assert.equal(await keyBySecret(store, hashOf(secret), NOW_MS), null);
  });
});

const KNOWN = ["premium", "public"];

test("profiles of a key follow from what is asked for", () => {
  const reach = { known: KNOWN, restriction: null };
  const of = (
    choice: object,
    current = EVERY_PROFILE,
    within: { known: string[]; restriction: string[] | null } = reach,
  ) => chosenProfiles(current, choice, within);
  assert.deepEqual(of({}), { defaultProfile: null, allowedProfiles: null });
  assert.deepEqual(of({ defaultProfile: "public" }), {
    defaultProfile: "public",
    allowedProfiles: null,
  });
  assert.deepEqual(of({ allowedProfiles: ["public", "public"] }), {
    defaultProfile: "public",
    allowedProfiles: ["public"],
  });
  assert.deepEqual(of({ allowedProfiles: ["public", "premium"] }), {
    defaultProfile: null,
    allowedProfiles: ["public", "premium"],
  });
  const narrow = { defaultProfile: "public", allowedProfiles: ["public"] };
  assert.deepEqual(of({ defaultProfile: null, allowedProfiles: null }, narrow), EVERY_PROFILE);
  assert.deepEqual(of({ allowedProfiles: ["premium"] }, narrow), {
    defaultProfile: "premium",
    allowedProfiles: ["premium"],
  });
  assert.deepEqual(of({}, EVERY_PROFILE, { known: KNOWN, restriction: ["public"] }), narrow);
  const wrong = of({ defaultProfile: "team", allowedProfiles: ["public", "team", "other"] });
  assert.ok("kind" in wrong);
  assert.deepEqual(wrong.details, [
    "allowed_profiles[1]",
    "allowed_profiles[2]",
    "default_profile",
  ]);
  assert.match(wrong.nextAction, /premium, public/);
});

test(
  "whatever is chosen lies within the token's restriction, and its default within what is " +
    "allowed",
  () => {
    const slug = fc.constantFrom("premium", "public", "team", "other");
    const slugs = fc.option(fc.uniqueArray(slug, { minLength: 1 }), { nil: null });
    const choice = fc.record(
      { defaultProfile: fc.option(slug, { nil: null }), allowedProfiles: slugs },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        choice,
        slugs,
        fc.uniqueArray(slug, { minLength: 1 }),
        (asked, restriction, known) => {
          fc.pre(restriction === null || known.some((it) => restriction.includes(it)));
          const chosen = chosenProfiles(EVERY_PROFILE, asked, { known, restriction });
          if ("kind" in chosen) return;
          assert.ok(isWithin(chosen, restriction));
          assert.ok(
            chosen.allowedProfiles === null ||
              chosen.allowedProfiles.includes(chosen.defaultProfile ?? "premium"),
          );
        },
      ),
    );
  },
);
