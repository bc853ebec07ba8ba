// Claims over the store: money moves once and to the unit, whatever nodes hold of it; one of many
// who claim at once wins; links and connections end.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { accountById, type Owner } from "../../../src/hosted/accounts/accounts.ts";
import {
  type ClaimParts,
  claimByLink,
  claimKey,
  claimLinkOf,
  createClaimLink,
} from "../../../src/hosted/accounts/claim-links.ts";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { Credit, Wallet } from "../../../src/hosted/credit/credit.ts";
import { createAccount, createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import { keyBySecret, listKeys } from "../../../src/hosted/keys/keys.ts";
import { insertManagementToken } from "../../../src/hosted/keys/management-token.ts";
import { customUntilMs, grantCustomAccess } from "../../../src/hosted/profiles/custom-access.ts";
import type { Runtime } from "../../../src/runtime.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { openCredit } from "../../fakes/credit.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";
import { accountOf, credit as pay } from "./account-fixture.ts";

const CU = 5_000;
const NOW_MS = 1_700_000_000_000;
const GRANT_N = 25_000_000n;
const SETTINGS = {
  flushIntervalMs: 50,
  nodeTimeoutMs: 1_000,
  minSliceN: 100 * CU,
  idleMs: 100,
} as const;

/** Not the same secret, and so none. */
const wrongEnd = (secret: string): string =>
  secret.slice(0, -1) + (secret.endsWith("x") ? "y" : "x");

const partsOf = (store: Store, nowMs = NOW_MS): ClaimParts => ({
  store,
  changes: { key: () => undefined, account: () => undefined },
  maxKeys: 5,
  nowMs,
});
const ownerOf = (accountId: string, profiles: readonly string[] | null = null): Owner => ({
  kind: "owner",
  accountId,
  profiles,
  manages: false,
  expiresAtMs: null,
});
const anonymous = (store: Store) =>
  createAnonymousKey(store, { name: "of an agent", grantN: GRANT_N }, NOW_MS);
const somebody = (store: Store) => createAccount(store, { ...UNCHOSEN, name: "first" }, NOW_MS);
const balance = async (store: Store, id: string) =>
  (await accountById(store, id, NOW_MS))?.balanceN;

eachStore(({ engine, open }) => {
  test(`days of Custom access add up, and grace that has begun goes on where it was (${engine})`, async (t) => {
    const store = await open(t);
    const [key, person] = [await anonymous(store), await somebody(store)];
    for (const { accountId } of [key, person])
      await grantCustomAccess(store, { accountId, days: 30, source: "same" }, NOW_MS);
    await store.db
      .updateTable("account")
      .set({ balance_n: 0n, first_paid_at: 1n, exhausted_at: 2n })
      .where("id", "=", key.accountId)
      .execute();
    assert.equal(
      typeof (await claimKey(partsOf(store), key.secret, ownerOf(person.accountId))),
      "object",
    );
    assert.equal(await customUntilMs(store.db, person.accountId), NOW_MS + 60 * 86_400_000);
    const { first_paid_at, exhausted_at } = await accountOf(store, person.accountId);
    assert.deepEqual([first_paid_at, exhausted_at], [1n, 2n]);
  });

  test(
    "a claimed key belongs to the account with all that is left on it, and cannot be claimed " +
      `again (${engine})`,
    async (t) => {
      const store = await open(t);
      const [key, person] = [await anonymous(store), await somebody(store)];
      await pay(store, key.accountId, { idemKey: "p1", amountN: 1_000_000_000n });
      const done = await claimKey(partsOf(store), key.secret, ownerOf(person.accountId));
      assert.deepEqual(done, {
        kind: "claimed",
        accountId: person.accountId,
        keyPrefix: key.prefix,
        token: null,
      });
      assert.equal(
        await claimKey(partsOf(store), key.secret, ownerOf(person.accountId)),
        "claimed",
      );
      assert.equal(
        await claimKey(partsOf(store), wrongEnd(key.secret), ownerOf(person.accountId)),
        "unknown",
      );
      const claimed = await keyBySecret(store, key.secret, NOW_MS);
      assert.deepEqual(
        [claimed?.accountId, claimed?.type, claimed?.balanceN, claimed?.fundedN],
        [person.accountId, "account", 1_025_000_000n, 1_025_000_000n],
      );
      const account = await accountOf(store, person.accountId);
      assert.deepEqual(
        [account.balance_n, account.first_paid_at],
        [1_025_000_000n, 1n],
        "an account that was paid for stays one",
      );
      assert.equal((await accountOf(store, key.accountId)).balance_n, 0n);
      const moves = await store.db
        .selectFrom("ledger_tx")
        .selectAll()
        .where("kind", "=", "move")
        .execute();
      assert.equal(moves.length, 1);
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "nothing is claimed by who is no account, into a full one, or with Custom profiles that " +
      `would be left behind (${engine})`,
    async (t) => {
      const store = await open(t);
      const [key, other, person] = [
        await anonymous(store),
        await anonymous(store),
        await somebody(store),
      ];
      assert.equal(
        await claimKey(partsOf(store), key.secret, ownerOf(other.accountId)),
        "no_account",
      );
      assert.equal(await claimKey(partsOf(store), key.secret, ownerOf(key.accountId)), "same");
      assert.equal(await claimKey(partsOf(store), key.secret, ownerOf("acc_none")), "no_account");
      assert.equal(
        await claimKey({ ...partsOf(store), maxKeys: 1 }, key.secret, ownerOf(person.accountId)),
        "full",
      );
      const profile = { id: "prf_1", slug: "mine", revision: 1n, created_at: 1n, updated_at: 1n };
      await store.db
        .insertInto("profile")
        .values({ ...profile, account_id: key.accountId, sealed: "x" })
        .execute();
      assert.equal(
        await claimKey(partsOf(store), key.secret, ownerOf(person.accountId)),
        "profiles",
      );
      await store.db.updateTable("profile").set({ sealed: null }).execute();
      assert.equal(await balance(store, key.accountId), GRANT_N, "what is refused changes nothing");
      assert.equal(
        typeof (await claimKey(partsOf(store), key.secret, ownerOf(person.accountId))),
        "object",
      );
    },
  );

  test(`a key reaches no further than the one that claimed it (${engine})`, async (t) => {
    const store = await open(t);
    const [key, person] = [await anonymous(store), await somebody(store)];
    await claimKey(partsOf(store), key.secret, ownerOf(person.accountId, ["public"]));
    const claimed = await keyBySecret(store, key.secret, NOW_MS);
    assert.deepEqual([claimed?.allowedProfiles, claimed?.defaultProfile], [["public"], "public"]);
  });

  test(
    "of many who claim at once one wins, by key and by link, and the balance moves once " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      for (let round = 0; round < 5; round++) {
        const key = await anonymous(store);
        const people = await Promise.all(Array.from({ length: 4 }, () => somebody(store)));
        const link = await createClaimLink(store, key.accountId, NOW_MS);
        assert.ok(link.kind === "claim_link");
        const tries = people.flatMap(({ accountId }) => [
          claimKey(partsOf(store), key.secret, ownerOf(accountId)),
          claimByLink(partsOf(store), link.token, ownerOf(accountId)),
          claimByLink(partsOf(store), link.token, null),
        ]);
        const outcomes = await Promise.all(tries);
        const winners = outcomes.filter((it) => typeof it === "object");
        assert.equal(winners.length, 1);
        for (const it of outcomes) if (typeof it === "string") assert.match(it, /^(claimed|used)$/);
        assert.equal(await balance(store, winners[0]?.accountId ?? ""), GRANT_N);
        assert.equal((await claimLinkOf(store, link.token, NOW_MS))?.end, "used");
      }
      const { count } = await store.db
        .selectFrom("account")
        .select((it) => it.fn.countAll<bigint>().as("count"))
        .where("kind", "=", "account")
        .executeTakeFirstOrThrow();
      assert.ok(count <= 25n, "a claim that lost has made no account");
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "a link ends after 10 minutes, when a later one is made, when it is used, and when the clock " +
      `steps back far (${engine})`,
    async (t) => {
      const store = await open(t);
      const key = await anonymous(store);
      const make = async (nowMs = NOW_MS) => {
        const link = await createClaimLink(store, key.accountId, nowMs);
        assert.ok(link.kind === "claim_link");
        return link;
      };
      const end = async (token: string, nowMs = NOW_MS) =>
        (await claimLinkOf(store, token, nowMs))?.end;
      const first = await make();
      assert.deepEqual(
        [first.keyPrefix, first.balanceN, await end(first.token)],
        [key.prefix, GRANT_N, null],
      );
      assert.deepEqual(
        [await end(first.token, NOW_MS + 599_999), await end(first.token, NOW_MS + 600_000)],
        [null, "expired"],
      );
      assert.deepEqual(
        [await end(first.token, NOW_MS - 30_000), await end(first.token, NOW_MS - 3_600_000)],
        [null, "expired"],
      );
      const second = await make();
      assert.deepEqual([await end(first.token), await end(second.token)], ["cancelled", null]);
      assert.equal(await claimByLink(partsOf(store), first.token, null), "cancelled");
      assert.equal(
        await claimByLink(partsOf(store, NOW_MS + 600_000), second.token, null),
        "expired",
      );
      const rows = await store.db.selectFrom("claim_link").selectAll().execute();
      assert.ok(
        !JSON.stringify(rows, (_, it) => (typeof it === "bigint" ? 0 : it)).includes(
          second.token.slice(7),
        ),
        "only a hash is kept",
      );
      for (let i = 0; i < 20; i++) await make(NOW_MS + i);
      assert.ok(
        (await store.db.selectFrom("claim_link").selectAll().execute()).length <= 2,
        "links do not pile up",
      );
      const third = await make(NOW_MS + 30);
      const done = await claimByLink(partsOf(store), third.token, null);
      assert.ok(typeof done === "object" && done.token?.startsWith("svc_mt_"));
      assert.equal(await claimByLink(partsOf(store), third.token, null), "used");
      assert.equal(await claimByLink(partsOf(store), "svc_cl_nothing", null), "unknown");
      assert.equal((await createClaimLink(store, key.accountId, NOW_MS)).kind, "api_fault");
    },
  );

  test(
    "a whole account is claimed by its agent's link: keys and money move, and the agent is left " +
      `with nothing (${engine})`,
    async (t) => {
      const store = await open(t);
      const source = await createAccount(store, { ...UNCHOSEN, name: "first" }, NOW_MS - 1_000);
      const [key, person] = [await anonymous(store), await somebody(store)];
      await claimKey(partsOf(store), key.secret, ownerOf(source.accountId));
      const link = await createClaimLink(store, source.accountId, NOW_MS);
      assert.ok(link.kind === "claim_link");
      assert.deepEqual(
        [link.keyPrefix, link.balanceN],
        [source.prefix, GRANT_N],
        "the oldest key, and all of the balance",
      );
      await claimByLink(partsOf(store), link.token, ownerOf(person.accountId));
      const scope = { accountId: person.accountId, profiles: null };
      assert.equal(
        (await listKeys(store, scope, { limit: 10, after: undefined }, NOW_MS)).keys.length,
        3,
      );
      const merged = await store.db
        .selectFrom("account")
        .select("merged_into")
        .where("id", "in", [source.accountId, key.accountId])
        .execute();
      assert.deepEqual(
        merged.map((it) => it.merged_into),
        [person.accountId, person.accountId],
        "who was part of the part is part of the whole",
      );
      assert.equal(
        (
          await listKeys(
            store,
            { ...scope, accountId: source.accountId },
            { limit: 10, after: undefined },
            NOW_MS,
          )
        ).keys.length,
        0,
      );
      assert.equal(await balance(store, person.accountId), GRANT_N);
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "what a node holds of an account whose owner's account was claimed too arrives at the last " +
      `one (${engine})`,
    async (t) => {
      const store = await open(t);
      const [key, middle, last] = [
        await anonymous(store),
        await somebody(store),
        await somebody(store),
      ];
      const runtime = simulatedWorld(1);
      const credit = await openCredit({
        store,
        runtime,
        node: { id: "n", region: "" },
        settings: SETTINGS,
        onError: () => undefined,
      });
      for (const id of [key.accountId, middle.accountId]) {
        if (id === middle.accountId) await pay(store, id, { idemKey: "p", amountN: 10_000_000n });
        const wallet = credit.wallet(id);
        credit.hold(wallet, CU);
        const refilled = new Promise<void>((resolve) => void credit.refilled(wallet, resolve));
        // The time from one round to the next.
        runtime.advance(20);
        await refilled;
        assert.ok(credit.hold(wallet, CU));
        credit.settle(wallet, {
          keyId: key.id,
          method: "eth_call",
          cu: 1,
          heldN: CU,
          chargeN: CU,
          freeCu: 0,
        });
      }
      await claimKey(partsOf(store), key.secret, ownerOf(middle.accountId));
      const link = await createClaimLink(store, middle.accountId, NOW_MS);
      assert.ok(link.kind === "claim_link");
      await claimByLink(partsOf(store), link.token, ownerOf(last.accountId));
      await credit.flush();
      assert.equal(
        await balance(store, last.accountId),
        GRANT_N + 10_000_000n - 2n * BigInt(CU),
        "shown at once",
      );
      await credit.close();
      assert.equal(
        (await accountOf(store, last.accountId)).balance_n,
        GRANT_N + 10_000_000n - 2n * BigInt(CU),
      );
      for (const id of [key.accountId, middle.accountId])
        assert.equal((await accountOf(store, id)).balance_n, 0n);
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "what a node holds when a key is claimed follows to its account: spent is billed, unspent " +
      `arrives, to the unit (${engine})`,
    async (t) => {
      const store = await open(t);
      await fc.assert(
        fc.asyncProperty(
          fc.array(STEP, { minLength: 6, maxLength: 40 }),
          fc.integer({ min: 1, max: 3 }),
          async (steps, nodes) => {
            await driftOfClaim(store, steps, nodes);
          },
        ),
        { numRuns: engine === "sqlite" ? 60 : 25 },
      );
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "an agent that is restricted stays so, and its account's balance shows what is leased " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      const [key, person] = [await anonymous(store), await somebody(store)];
      await store.transaction((tx) =>
        insertManagementToken(
          tx,
          {
            accountId: person.accountId,
            name: "",
            profiles: ["public"],
            readOnly: true,
            expiresAtMs: null,
          },
          NOW_MS,
        ),
      );
      const runtime = simulatedWorld(1);
      const credit = await openCredit({
        store,
        runtime,
        node: { id: "n", region: "" },
        settings: SETTINGS,
        onError: (error) => assert.fail(String(error)),
      });
      const wallet = credit.wallet(key.accountId);
      credit.hold(wallet, CU);
      await new Promise<void>((resolve) => void credit.refilled(wallet, resolve));
      assert.ok(credit.hold(wallet, CU), "something is leased");
      await claimKey(partsOf(store), key.secret, ownerOf(person.accountId));
      assert.equal(
        await balance(store, person.accountId),
        GRANT_N,
        "the balance shows at once what a node still holds",
      );
      credit.settle(wallet, {
        keyId: key.id,
        method: "eth_call",
        cu: 1,
        heldN: CU,
        chargeN: CU,
        freeCu: 0,
      });
      await credit.close();
      assert.deepEqual(
        [await balance(store, person.accountId), await balance(store, key.accountId)],
        [GRANT_N - BigInt(CU), 0n],
      );
      assert.deepEqual(await audit(store), []);
    },
  );
});

type Step =
  | "hold"
  | "settle"
  | "release"
  | "claim"
  | "flush"
  | "advance"
  | "retire"
  | "die"
  | "pay";

const STEP = fc.tuple(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Step>("hold") },
    { weight: 5, arbitrary: fc.constant<Step>("settle") },
    { weight: 2, arbitrary: fc.constant<Step>("release") },
    { weight: 3, arbitrary: fc.constantFrom<Step>("flush", "advance", "pay") },
    { weight: 2, arbitrary: fc.constantFrom<Step>("claim", "retire", "die") },
  ),
  fc.nat(),
);

interface Node {
  readonly credit: Credit;
  readonly life: { isOver: boolean };
  readonly holds: { readonly wallet: Wallet; readonly amountN: number }[];
  /** Served and not known to be written: what may be lost when it dies. */
  unwrittenN: number;
}

/** Nodes that hold and spend while the key is claimed; afterwards all money is where it belongs. */
async function driftOfClaim(
  store: Store,
  steps: readonly (readonly [Step, number])[],
  count: number,
): Promise<void> {
  const [key, person] = [await anonymous(store), await somebody(store)];
  const runtime = simulatedWorld(1);
  const start = async (id: string): Promise<Pick<Node, "credit" | "life">> => {
    const life = { isOver: false };
    const mortal: Runtime = {
      ...runtime,
      after: (ms, run) => runtime.after(ms, () => !life.isOver && run()),
    };
    return {
      life,
      credit: await openCredit({
        store,
        runtime: mortal,
        node: { id, region: "" },
        settings: SETTINGS,
        onError: () => undefined,
      }),
    };
  };
  const nodes: Node[] = [];
  for (let i = 0; i < count; i++)
    nodes.push({ ...(await start(`n${i}`)), holds: [], unwrittenN: 0 });
  const sum = { servedN: 0n, lostN: 0n, paidN: GRANT_N, claimed: false };
  for (const [step, chance] of [...steps, ["claim", 0] as const]) {
    const node = nodes[chance % count];
    assert.ok(node !== undefined);
    const payer = sum.claimed && chance % 3 !== 0 ? person.accountId : key.accountId;
    switch (step) {
      case "hold": {
        const wallet = node.credit.wallet(payer);
        const amountN = (1 + (chance % 40)) * CU;
        if (node.credit.hold(wallet, amountN)) node.holds.push({ wallet, amountN });
        break;
      }
      case "settle":
      case "release": {
        const hold = node.holds.shift();
        if (hold === undefined) break;
        if (step === "release") node.credit.release(hold.wallet, hold.amountN);
        else {
          node.credit.settle(hold.wallet, {
            keyId: key.id,
            method: "eth_call",
            cu: 1,
            heldN: hold.amountN,
            chargeN: hold.amountN,
            freeCu: 0,
          });
          sum.servedN += BigInt(hold.amountN);
          node.unwrittenN += hold.amountN;
        }
        break;
      }
      case "claim": {
        const claims = [1, 2].map(() =>
          claimKey(partsOf(store), key.secret, ownerOf(person.accountId)),
        );
        const done = await Promise.all(claims);
        assert.equal(done.filter((it) => typeof it === "object").length, sum.claimed ? 0 : 1);
        sum.claimed = true;
        break;
      }
      case "flush":
        await node.credit.flush();
        node.unwrittenN = 0;
        break;
      case "retire":
        node.credit.evict(key.accountId);
        break;
      case "advance":
        runtime.advance(60);
        break;
      case "pay":
        if (sum.claimed) break;
        await pay(store, key.accountId, {
          idemKey: `pay:${key.id}:${chance}:${sum.paidN}`,
          amountN: 7n,
        });
        sum.paidN += 7n;
        break;
      case "die": {
        // A new start of the same node: what the old one had not written is lost, the rest is
        // settled by the new one.
        sum.lostN += BigInt(node.unwrittenN);
        node.unwrittenN = 0;
        node.holds.length = 0;
        node.life.isOver = true;
        await turns(20);
        Object.assign(node, await start(`n${chance % count}`));
      }
    }
    await turns(store.engine === "sqlite" ? 6 : 60);
  }
  for (const node of nodes)
    for (const { wallet, amountN } of node.holds.splice(0)) node.credit.release(wallet, amountN);
  for (const node of nodes) await node.credit.close();
  assert.equal((await accountOf(store, key.accountId)).balance_n, 0n, "nothing stays behind");
  const left = (await accountOf(store, person.accountId)).balance_n;
  const missing = sum.paidN - sum.servedN - left;
  assert.ok(
    missing <= 0n && -missing <= sum.lostN,
    `paid ${sum.paidN}, served ${sum.servedN}, left ${left}, at most ${sum.lostN} unbilled`,
  );
  assert.deepEqual(await audit(store), []);
}

/** Lets what was begun go on. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}
