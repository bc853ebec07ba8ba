// Revisions of Custom profiles: the last ones are known, without secrets, sealed; and a document as
// it is shown, sent back, takes from the saved one only what goes to the same host as before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { createAccount } from "../../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import { grantCustomAccess } from "../../../src/hosted/profiles/custom-access.ts";
import {
  HIDDEN,
  type ProfileDocument,
  type ProviderDocument,
} from "../../../src/hosted/profiles/document.ts";
import {
  deleteProfile,
  type ProfileParts,
  profileRevision,
  profileRevisions,
  SEALED_PROFILES,
  saveProfile,
} from "../../../src/hosted/profiles/profiles.ts";
import {
  MAX_REVISIONS,
  withoutSecrets,
  withSavedSecrets,
} from "../../../src/hosted/profiles/revisions.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { reseal } from "../../../src/shared/nodes/resealing.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { eachStore } from "../../fakes/stores.ts";

const NOW_MS = 1_800_000_000_000;
const OLD = "the secret before, 32 bytes or more";
const NEW = "the secret of today, 32 bytes or more";
const CHAINS = [
  {
    chainId: 1,
    chainName: "ethereum",
    name: "Ethereum",
    aliases: ["mainnet"],
    blockTimeMs: 12_000,
  },
];
const LIMITS = { archival: false, logs_span: null, methods_blocked: [] };

function provider(more: Partial<ProviderDocument> = {}): ProviderDocument {
  return {
    name: "mine",
    url: "https://eth.example.com/very-secret-key",
    headers: { "X-Key": "very-secret-header" },
    limits: LIMITS,
    ...more,
  };
}

function documentOf(
  providers: ProviderDocument[],
  { chain = "ethereum", lag = 5 } = {},
): ProfileDocument {
  return { chains: { [chain]: { max_lag_blocks: lag, block_protection: false, providers } } };
}

const partsOf = (store: Store, secret = OLD, previous: string | null = null): ProfileParts => ({
  store,
  sealer: new Sealer(secret, previous),
  maxProfiles: 2,
});

eachStore(({ engine, open }) => {
  test(
    `the last ${MAX_REVISIONS} revisions are known, sealed and without secrets, and go with the ` +
      `profile (${engine})`,
    async (t) => {
      const store = await open(t);
      const { accountId } = await createAccount(store, UNCHOSEN, NOW_MS);
      await grantCustomAccess(store, { accountId, days: 1, source: "test" }, NOW_MS);
      const parts = partsOf(store);
      const ref = { accountId, slug: "nodes" };
      const change = { ...ref, expected: "none_named" } as const;
      assert.equal(await profileRevisions(parts, ref), null);
      const total = MAX_REVISIONS + 3;
      for (let lag = 1; lag <= total; lag++)
        await saveProfile(
          parts,
          { ...change, nowMs: NOW_MS + lag },
          documentOf([provider()], { lag }),
        );
      const known = (await profileRevisions(parts, ref)) ?? [];
      assert.deepEqual(
        known.map(({ revision, savedAtMs }) => [revision, savedAtMs - NOW_MS]),
        Array.from({ length: MAX_REVISIONS }, (_, at) => [total - at, total - at]),
      );
      const earlier = await profileRevision(parts, ref, 10);
      assert.deepEqual(earlier?.document, withoutSecrets(documentOf([provider()], { lag: 10 })));
      assert.equal(earlier?.savedAtMs, NOW_MS + 10);
      const present = await profileRevision(parts, ref, total);
      assert.equal(present?.document.chains["ethereum"]?.max_lag_blocks, total);
      for (const unknown of [0, 3, total + 1])
        assert.equal(await profileRevision(parts, ref, unknown), null);
      const rows = await store.db.selectFrom("profile_revision").selectAll().execute();
      assert.equal(rows.length, MAX_REVISIONS - 1);
      assert.ok(rows.every(({ sealed }) => !sealed.includes("example")));
      await reseal(store, partsOf(store, NEW, OLD).sealer, SEALED_PROFILES);
      const resealed = await profileRevision(partsOf(store, NEW), ref, 10);
      assert.deepEqual(resealed, earlier);
      assert.equal(await profileRevision(parts, ref, 10), null, "the old secret opens it no more");
      assert.equal(await deleteProfile(parts, { ...change, nowMs: NOW_MS + 50 }), true);
      assert.equal(await profileRevisions(parts, ref), null);
      assert.deepEqual(await store.db.selectFrom("profile_revision").selectAll().execute(), []);
      await saveProfile(parts, { ...change, nowMs: NOW_MS + 60 }, documentOf([provider()]));
      assert.deepEqual(await profileRevisions(parts, ref), [
        { revision: total + 2, savedAtMs: NOW_MS + 60 },
      ]);
    },
  );

  test(`a program that knows no revisions deletes profiles beside this one (${engine})`, async (t) => {
    const store = await open(t);
    const { accountId } = await createAccount(store, UNCHOSEN, NOW_MS);
    await grantCustomAccess(store, { accountId, days: 1, source: "test" }, NOW_MS);
    const parts = partsOf(store);
    const ref = { accountId, slug: "nodes" };
    const save = (lag: number) =>
      saveProfile(
        parts,
        { ...ref, expected: "none_named", nowMs: NOW_MS + lag },
        documentOf([provider()], { lag }),
      );
    for (const lag of [1, 2, 3]) await save(lag);
    // As 0.1.0 deletes a profile: the row stays without a document, and goes much later.
    await sql`update profile set sealed = null, revision = revision + 1`.execute(store.db);
    await save(5);
    assert.deepEqual(await profileRevisions(parts, ref), [{ revision: 5, savedAtMs: NOW_MS + 5 }]);
    await save(6);
    await sql`update profile set sealed = null, revision = revision + 1`.execute(store.db);
    await sql`delete from profile`.execute(store.db);
    assert.deepEqual(await store.db.selectFrom("profile_revision").selectAll().execute(), []);
  });
});

test("nothing of an address but its host is shown, and no header value", () => {
  const shown = withoutSecrets(
    documentOf([
      provider({ ws_url: "wss://user:very-secret-password@ws.example.com/?key=very-secret-query" }),
    ]),
  );
  assert.ok(!JSON.stringify(shown).includes("very-secret"));
  assert.deepEqual(shown.chains["ethereum"]?.providers[0], {
    name: "mine",
    url: `https://eth.example.com/${HIDDEN}`,
    ws_url: `wss://ws.example.com/${HIDDEN}`,
    headers: { "X-Key": HIDDEN },
    limits: LIMITS,
  });
  assert.deepEqual(withoutSecrets(shown), shown);
});

test("what is hidden is found again, by the name of the provider on its chain", () => {
  const saved = documentOf([provider(), provider({ name: "other", url: "https://b.example/key" })]);
  assert.deepEqual(withSavedSecrets(withoutSecrets(saved), saved, CHAINS), saved);
  const byAlias = withSavedSecrets(
    documentOf(withoutSecrets(saved).chains["ethereum"]?.providers ?? [], { chain: "mainnet" }),
    saved,
    CHAINS,
  );
  assert.deepEqual(byAlias.chains["mainnet"], saved.chains["ethereum"]);
});

test("a secret goes to no host that it was not given for", () => {
  const saved = documentOf([provider()]);
  const hidden = withoutSecrets(documentOf([provider()])).chains["ethereum"]?.providers[0];
  assert.ok(hidden !== undefined);
  const sent = (change: Partial<ProviderDocument>, chain = "ethereum") =>
    withSavedSecrets(documentOf([{ ...hidden, ...change }], { chain }), saved, CHAINS).chains[chain]
      ?.providers[0];
  const elsewhere = [
    { url: "https://evil.example/steal" },
    { url: `https://evil.example/${HIDDEN}` },
    { url: `http://eth.example.com/${HIDDEN}` },
    { url: `https://eth.example.com:444/${HIDDEN}` },
    { ws_url: "wss://evil.example" },
  ];
  for (const change of elsewhere) {
    const provided = sent(change);
    assert.equal(provided?.headers["X-Key"], HIDDEN, JSON.stringify(change));
    assert.ok(!String(provided?.url).includes("evil.example/very"), JSON.stringify(change));
  }
  assert.equal(sent({ name: "renamed" })?.url, hidden.url);
  assert.equal(sent({}, "elsewhere")?.url, hidden.url);
  assert.equal(sent({}, "__proto__")?.url, hidden.url);
  assert.deepEqual(sent({ headers: { "X-Other": HIDDEN, constructor: HIDDEN } })?.headers, {
    "X-Other": HIDDEN,
    constructor: HIDDEN,
  });
});
