// Custom profiles in the store, on both engines: sealed at rest, revisions, limits, two writers,
// days of access; and how they come into memory and go.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fault } from "../../../src/core/faults/rpc-fault.ts";
import { PUBLIC_ONLY } from "../../../src/core/public-address.ts";
import { createAccount } from "../../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import {
  grantCustomAccess,
  MAX_DELETED,
  ownProfiles,
} from "../../../src/hosted/profiles/custom-access.ts";
import type { ProfileDocument, readDocument } from "../../../src/hosted/profiles/document.ts";
import {
  PROFILE_LOADER_LIMITS,
  ProfileLoader,
  type ProfileLoaderLimits,
} from "../../../src/hosted/profiles/profile-loader.ts";
import {
  deleteProfile,
  type ExpectedRevision,
  listProfiles,
  type ProfileParts,
  profileBySlug,
  SEALED_PROFILES,
  saveProfile,
} from "../../../src/hosted/profiles/profiles.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { reseal } from "../../../src/shared/nodes/resealing.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { failingStore } from "../../fakes/hosted.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";

const DAY_MS = 86_400_000;
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

function documentWith(key: string): ProfileDocument {
  const limits = { archival: false, logs_span: null, methods_blocked: [] };
  return {
    chains: {
      ethereum: {
        max_lag_blocks: 5,
        block_protection: false,
        providers: [
          {
            name: "mine",
            url: `https://eth.example.com/${key}`,
            headers: { "X-Key": key },
            limits,
          },
        ],
      },
    },
  };
}

async function account(store: Store, days = 1): Promise<string> {
  const { accountId } = await createAccount(store, UNCHOSEN, NOW_MS);
  if (days > 0) await grantCustomAccess(store, { accountId, days, source: "test" }, NOW_MS);
  return accountId;
}

const partsOf = (store: Store, secret = OLD): ProfileParts => ({
  store,
  sealer: new Sealer(secret, null),
  maxProfiles: 2,
});
const changeOf = (
  accountId: string,
  slug = "nodes",
  expected: ExpectedRevision = "none_named",
) => ({ accountId, slug, expected, nowMs: NOW_MS });
const codeOf = (it: object) => ("code" in it ? it.code : "revision" in it ? it.revision : it);

eachStore(({ engine, open }) => {
  test(
    "what stands in a profile is nowhere in the store as it is, and opens with its secret only " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      const accountId = await account(store);
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("secret-of-the-owner"));
      const rows = await store.db.selectFrom("profile").selectAll().execute();
      assert.equal(rows.length, 1);
      assert.ok(
        !JSON.stringify(rows, (_, value) => String(value ?? "")).includes("secret-of-the-owner") &&
          !rows[0]?.sealed?.includes("example"),
      );
      assert.deepEqual(
        (await profileBySlug(partsOf(store), { accountId, slug: "nodes" }))?.document,
        documentWith("secret-of-the-owner"),
      );
      const other = await profileBySlug(partsOf(store, NEW), { accountId, slug: "nodes" });
      assert.deepEqual(
        [other?.document, other?.revision],
        [null, 1],
        "with another secret it cannot be read, and nothing throws",
      );
      const rotated = { ...partsOf(store), sealer: new Sealer(NEW, OLD) };
      assert.equal(await reseal(store, rotated.sealer, SEALED_PROFILES), 1);
      assert.equal(await reseal(store, rotated.sealer, SEALED_PROFILES), 0);
      assert.deepEqual(
        (await profileBySlug(partsOf(store, NEW), { accountId, slug: "nodes" }))?.document,
        documentWith("secret-of-the-owner"),
      );
      const id = rows[0]?.id ?? "";
      const moved = {
        ...rows[0],
        id: "prf_other",
        account_id: accountId,
        slug: "copied",
        revision: 1n,
        created_at: 1n,
        updated_at: 1n,
        sealed: rows[0]?.sealed ?? "",
      };
      await store.db.insertInto("profile").values(moved).execute();
      assert.notEqual(id, "prf_other");
      assert.equal(
        (await profileBySlug(partsOf(store), { accountId, slug: "copied" }))?.document,
        null,
        "a sealed text opens in its own row only",
      );
    },
  );

  test(
    "revisions count every change and go on after a deletion; If-Match holds; the same document " +
      `is no change (${engine})`,
    async (t) => {
      const store = await open(t);
      const accountId = await account(store);
      const parts = partsOf(store);
      const save = async (key: string, expected?: ExpectedRevision) =>
        codeOf(await saveProfile(parts, changeOf(accountId, "nodes", expected), documentWith(key)));
      assert.equal(await save("a", "any"), "revision_conflict");
      assert.equal(await save("a"), 1);
      assert.equal(await save("a", 1), 1);
      assert.equal(await save("b", 1), 2);
      assert.equal(await save("c", 1), "revision_conflict");
      assert.equal(await save("c", "no_such"), "revision_conflict");
      assert.equal(
        codeOf(Object(await deleteProfile(parts, changeOf(accountId, "nodes", 1)))),
        "revision_conflict",
      );
      assert.equal(await deleteProfile(parts, changeOf(accountId, "nodes", 2)), true);
      assert.equal(await deleteProfile(parts, changeOf(accountId)), true);
      assert.equal(await deleteProfile(parts, changeOf(accountId, "never")), false);
      assert.equal(await profileBySlug(parts, { accountId, slug: "nodes" }), null);
      assert.equal(await save("d"), 4);
      const results = await Promise.all(["x", "y", "z"].map((key) => save(key, 4)));
      assert.deepEqual(
        results.map(String).sort(),
        ["5", "revision_conflict", "revision_conflict"],
        "of several at once one is written",
      );
    },
  );

  test(
    "no more profiles than allowed, also at once; none without Custom access; names of deleted " +
      `ones stay, up to a bound (${engine})`,
    async (t) => {
      const store = await open(t);
      const parts = partsOf(store);
      const without = await account(store, 0);
      assert.equal(
        codeOf(await saveProfile(parts, changeOf(without), documentWith("a"))),
        "custom_access_required",
      );
      const accountId = await account(store);
      const all = await Promise.all(
        ["one", "two", "three", "four"].map((slug) =>
          saveProfile(parts, changeOf(accountId, slug), documentWith("a")),
        ),
      );
      assert.equal(all.filter((it) => codeOf(it) === "profile_limit").length, 2);
      assert.equal((await listProfiles(parts, accountId)).length, 2);
      const late = {
        ...changeOf(accountId, (await listProfiles(parts, accountId))[0]?.slug),
        nowMs: NOW_MS + DAY_MS,
      };
      assert.equal(codeOf(await saveProfile(parts, late, documentWith("a"))), "profile_suspended");
      for (const { slug } of await listProfiles(parts, accountId))
        await deleteProfile(parts, changeOf(accountId, slug));
      for (let i = 0; i < MAX_DELETED + 5; i++) {
        await saveProfile(parts, changeOf(accountId, `p${i}`), documentWith("a"));
        await deleteProfile(parts, changeOf(accountId, `p${i}`));
      }
      const rows = await store.db
        .selectFrom("profile")
        .select("id")
        .where("account_id", "=", accountId)
        .execute();
      assert.equal(rows.length, MAX_DELETED);
    },
  );

  test(
    "days of access follow each other without a gap, also when given at once, and once for each " +
      `source (${engine})`,
    async (t) => {
      const store = await open(t);
      const accountId = await account(store, 0);
      const give = (source: string, days: number) =>
        grantCustomAccess(store, { accountId, days, source }, NOW_MS);
      await Promise.all([give("a", 1), give("b", 2), give("c", 3)]);
      const again = await give("a", 9);
      assert.equal(again.kind, "custom_time");
      const rows = await store.db
        .selectFrom("custom_access")
        .selectAll()
        .orderBy("from_at")
        .execute();
      const ends = rows.map((it) => Number(it.until_at));
      assert.deepEqual(
        rows.map((it) => Number(it.from_at)),
        [NOW_MS, ends[0], ends[1]],
      );
      assert.equal(ends[2], NOW_MS + 6 * DAY_MS);
      assert.equal(
        codeOf(
          await grantCustomAccess(store, { accountId: "acc_none", days: 1, source: "a" }, NOW_MS),
        ),
        "not_found",
      );
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("a"));
      let wallMs = NOW_MS;
      const own = await ownProfiles(store, accountId, () => wallMs);
      assert.equal(own?.servicesOf("nodes")?.[0]?.access, "custom");
      assert.equal(own?.servicesOf("never"), undefined);
      wallMs = NOW_MS + 6 * DAY_MS;
      assert.deepEqual(
        [own?.servicesOf("nodes")?.[0]?.access, own?.servicesOf("nodes")?.[0]?.fallback],
        ["premium", "profile"],
      );
    },
  );

  test(
    "a profile is loaded once for all who wait, renewed when it changes, and gone after idle " +
      `minutes; the number in memory has a bound (${engine})`,
    async (t) => {
      const store = await open(t);
      const accountId = await account(store);
      const { runtime, served, loader, ready } = serving(store, { maxLoaded: 2 });
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("a"));
      assert.deepEqual(
        await Promise.all([
          ready(accountId, "nodes"),
          ready(accountId, "nodes"),
          ready(accountId, "nodes"),
        ]),
        [null, null, null],
      );
      assert.equal(served.puts, 1);
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("b"));
      await Promise.all([
        loader.changed({ accountId, slug: "nodes" }),
        loader.changed({ accountId, slug: "nodes" }),
      ]);
      assert.match(served.urlOf(`${accountId}/nodes`), /\/b$/);
      assert.equal((await ready(accountId, "never"))?.code, "not_prepared");
      await saveProfile(partsOf(store), changeOf(accountId, "second"), documentWith("a"));
      assert.equal(await ready(accountId, "second"), null);
      const other = await account(store);
      await saveProfile(partsOf(store), changeOf(other), documentWith("a"));
      assert.equal(
        (await ready(other, "nodes"))?.code,
        "not_prepared",
        "both places are taken by profiles in use",
      );
      runtime.advance(60_000);
      loader.touch({ accountId, slug: "second" });
      assert.equal(await ready(other, "nodes"), null, "the longest unused one makes room");
      assert.ok(!served.has(`${accountId}/nodes`) && served.has(`${accountId}/second`));
      await deleteProfile(partsOf(store), changeOf(accountId, "second"));
      await loader.changed({ accountId, slug: "second" });
      assert.ok(!served.has(`${accountId}/second`));
      runtime.advance(PROFILE_LOADER_LIMITS.idleMs + 60_000);
      assert.deepEqual([served.has(`${other}/nodes`), loader.size], [false, 0]);
      loader.close();
    },
  );

  test(`profiles that were changed elsewhere are read one at a time, and again where they change meanwhile (${engine})`, async (t) => {
    const store = await open(t);
    const accountId = await account(store);
    let [reading, most] = [0, 0];
    const db = store.db.withPlugin({
      transformQuery({ node }) {
        most = Math.max(most, ++reading);
        return node;
      },
      async transformResult({ result }) {
        reading--;
        return result;
      },
    });
    const { served, loader, ready } = serving({ ...store, db });
    for (const slug of ["nodes", "second"]) {
      await saveProfile(partsOf(store), changeOf(accountId, slug), documentWith("a"));
      assert.equal(await ready(accountId, slug), null);
      await saveProfile(partsOf(store), changeOf(accountId, slug), documentWith("b"));
    }
    loader.changedElsewhere(new Set([`${accountId}/nodes`, `${accountId}/never`]));
    loader.changedElsewhere(null);
    await loader.settled();
    assert.match(served.urlOf(`${accountId}/nodes`), /\/b$/);
    assert.match(served.urlOf(`${accountId}/second`), /\/b$/);
    assert.equal(most, 1);
    loader.changedElsewhere(null);
    await saveProfile(partsOf(store), changeOf(accountId), documentWith("c"));
    loader.changedElsewhere(new Set([`${accountId}/nodes`]));
    await loader.settled();
    assert.match(served.urlOf(`${accountId}/nodes`), /\/c$/);
    loader.close();
  });

  test(
    "one that cannot be opened is profile_config_unavailable; where the store hangs or fails it " +
      `is not_prepared after a bounded wait; both pass (${engine})`,
    async (t) => {
      const store = await open(t);
      const accountId = await account(store);
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("a"));
      const { runtime, served, loader, ready } = serving(store, {}, NEW);
      assert.equal((await ready(accountId, "nodes"))?.code, "profile_config_unavailable");
      assert.equal((await ready(accountId, "nodes"))?.code, "profile_config_unavailable");
      await saveProfile(partsOf(store, NEW), changeOf(accountId), documentWith("b"));
      runtime.advance(PROFILE_LOADER_LIMITS.failedMs);
      assert.equal(await ready(accountId, "nodes"), null);
      assert.match(served.urlOf(`${accountId}/nodes`), /\/b$/);
      loader.close();
      const hanging = serving({
        ...store,
        db: parseDb(new Proxy(store.db, { get: () => () => new Proxy({}, { get: hang }) })),
      });
      const waiting = hanging.ready(accountId, "nodes");
      hanging.runtime.advance(PROFILE_LOADER_LIMITS.waitMs);
      assert.equal((await waiting)?.code, "not_prepared");
      hanging.loader.close();
      const failing = serving(failingStore(() => new Error("the disk is gone")));
      assert.equal((await failing.ready(accountId, "nodes"))?.code, "not_prepared");
      failing.loader.close();
    },
  );

  test(
    "when the store fails as a change should be read, the revision before goes on serving and " +
      `the new one follows by itself (${engine})`,
    async (t) => {
      const store = await open(t);
      const accountId = await account(store);
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("a"));
      const broken = failingStore(() => new Error("the disk is gone"));
      let fails = false;
      const flaky: Store = {
        ...store,
        get db() {
          return fails ? broken.db : store.db;
        },
      };
      const { runtime, served, loader, ready } = serving(flaky);
      assert.equal(await ready(accountId, "nodes"), null);
      await saveProfile(partsOf(store), changeOf(accountId), documentWith("b"));
      fails = true;
      await loader.changed({ accountId, slug: "nodes" });
      assert.equal(await ready(accountId, "nodes"), null);
      assert.match(served.urlOf(`${accountId}/nodes`), /\/a$/);
      fails = false;
      const renewed = new Promise<void>((resolve) => {
        served.onPut = resolve;
      });
      runtime.advance(30_000);
      await renewed;
      assert.match(served.urlOf(`${accountId}/nodes`), /\/b$/);
      loader.close();
    },
  );
});

/** Whatever is called: the same again, and nothing ever comes of it. */
function hang(_: object, name: string | symbol): unknown {
  if (name === "executeTakeFirst" || name === "execute") return () => new Promise(() => {});
  return () => new Proxy({}, { get: hang });
}

function parseDb(it: object): Store["db"] {
  return it as Store["db"];
}

/** Memory for profiles over a store, with a simulated clock. */
function serving(store: Store, limits: Partial<ProfileLoaderLimits> = {}, secret = OLD) {
  const runtime = simulatedWorld(1);
  const profiles = new Map<string, string>();
  const served = {
    puts: 0,
    onPut: (): void => {},
    put(profile: Exclude<ReturnType<typeof readDocument>, { readonly kind: unknown }>) {
      served.puts++;
      profiles.set(
        `${profile.owner}/${profile.slug}`,
        profile.chains.get("ethereum")?.providers[0]?.url ?? "",
      );
      served.onPut();
    },
    remove: (...ids: readonly string[]) => {
      for (const id of ids) profiles.delete(id);
    },
    has: (id: string) => profiles.has(id),
    urlOf: (id: string) => profiles.get(id) ?? "",
  };
  const parts = {
    store,
    runtime,
    sealer: new Sealer(secret, null),
    chains: () => CHAINS,
    rules: PUBLIC_ONLY,
    served,
    onError: () => {},
  };
  const loader = new ProfileLoader({
    ...parts,
    limits: { ...PROFILE_LOADER_LIMITS, maxLoaded: 500, ...limits },
  });
  const ready = (accountId: string, slug: string) =>
    new Promise<Fault | null>((resolve) => void loader.prepare({ accountId, slug }, resolve));
  return { runtime, served, loader, ready };
}
