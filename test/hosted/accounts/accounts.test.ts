// What an account is told it has: balance, fallback, free allowance by month; and limits by
// address.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AddressLimit, networkOf } from "../../../src/core/billing/address-limit.ts";
import { usdText } from "../../../src/core/billing/price.ts";
import {
  type AccountRecord,
  accountById,
  accountViewOf,
} from "../../../src/hosted/accounts/accounts.ts";
import { lastHours } from "../../../src/hosted/accounts/hour-range.ts";
import {
  accountUsage,
  type UsageScope,
  usageReport,
  type usedView,
} from "../../../src/hosted/accounts/usage.ts";
import { monthOf, monthStartMs } from "../../../src/hosted/credit/usage-buffer.ts";
import { addKey, createAccount, createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import { allPurchases, purchasesOfAccount } from "../../../src/payments/purchase/all-purchases.ts";
import { isStoreFailure } from "../../../src/shared/store/store-failure.ts";
import { TARIFF } from "../../fakes/hosted.ts";
import { failedPurchase } from "../../fakes/purchase-row.ts";
import { eachStore } from "../../fakes/stores.ts";

const NOW_MS = Date.UTC(2026, 5, 30, 23, 59);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const CU = BigInt(TARIFF.nanoPerCu);
const TERMS = { freeCuPerMonth: 1_000, fallbackMs: 30 * DAY_MS, tariff: TARIFF };
const NEW: AccountRecord = {
  id: "acc_1",
  kind: "account",
  balanceN: 0n,
  firstPaidAtMs: null,
  exhaustedAtMs: null,
  usedCu: 0,
  keys: 1,
  createdAtMs: 0,
};

test("an account is served by its balance, then because it has paid, then for free, then not at all", () => {
  const standing = (it: Partial<AccountRecord>) => accountViewOf({ ...NEW, ...it }, TERMS, NOW_MS);
  const paid = { firstPaidAtMs: 1, exhaustedAtMs: NOW_MS - DAY_MS };
  assert.equal(standing({ balanceN: CU }).access, "premium");
  assert.equal(
    standing({ balanceN: CU - 1n, kind: "anonymous" }).access,
    "none",
    "no call costs so little",
  );
  assert.deepEqual(
    [standing(paid).access, standing(paid).fallbackUntilMs],
    ["public", NOW_MS + 29 * DAY_MS],
  );
  const rest = standing({ ...paid, balanceN: 2n * CU });
  assert.deepEqual(
    [rest.access, rest.fallbackUntilMs],
    ["public", NOW_MS + 29 * DAY_MS],
    "a rest that pays for no usual call",
  );
  const unnoted = standing({ firstPaidAtMs: 1 });
  assert.deepEqual(
    [unnoted.access, unnoted.fallbackUntilMs],
    ["public", NOW_MS + 30 * DAY_MS],
    "as the next call is served",
  );
  assert.equal(
    standing({ ...paid, exhaustedAtMs: NOW_MS - 30 * DAY_MS, usedCu: 1_000 }).access,
    "none",
  );
  assert.equal(standing({ usedCu: 999 }).access, "public");
  assert.equal(standing({ usedCu: 1_000 }).access, "none");
  assert.deepEqual(
    [standing({ kind: "anonymous" }).access, standing({ kind: "anonymous" }).allowanceCu],
    ["none", 0],
  );
  assert.equal(standing({}).resetsAtMs, Date.UTC(2026, 6, 1));
});

test("months begin where the calendar says", () => {
  assert.equal(monthOf(0), 0);
  assert.equal(monthOf(-1), -1);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: Date.UTC(2200, 0) }), (wallMs) => {
      const month = monthOf(wallMs);
      assert.ok(monthStartMs(month) <= wallMs && wallMs < monthStartMs(month + 1));
    }),
  );
});

eachStore(({ engine, open }) => {
  test(`an account tells the allowance of this month only (${engine})`, async (t) => {
    const store = await open(t);
    const { accountId } = await createAccount(store, UNCHOSEN, NOW_MS);
    const month = BigInt(monthOf(NOW_MS));
    await store.db
      .insertInto("allowance_month")
      .values([
        { account_id: accountId, month: month - 1n, used_cu: 7n },
        { account_id: accountId, month, used_cu: 5n },
      ])
      .execute();
    const account = await accountById(store, accountId, NOW_MS);
    assert.deepEqual([account?.usedCu, account?.keys, account?.balanceN], [5, 1, 0n]);
    assert.equal(
      (await accountById(store, accountId, NOW_MS + 60_000))?.usedCu,
      0,
      "it begins anew with the month",
    );
    assert.equal(await accountById(store, "acc_none", NOW_MS), null);
  });

  test(`usage is told by method, by key and by hour, and its parts sum to the same (${engine})`, async (t) => {
    const store = await open(t);
    const [a, b] = [
      await createAnonymousKey(store, { name: "a", grantN: 1n }, NOW_MS),
      await createAnonymousKey(store, { name: "b", grantN: 1n }, NOW_MS),
    ];
    const hour = BigInt(Math.floor(NOW_MS / HOUR_MS));
    const line = (key: typeof a, method: string, ago: bigint, calls: bigint) => ({
      account_id: key.accountId,
      key_id: key.id,
      method,
      hour: hour - ago,
      calls,
      cu: calls * 3n,
      charge_n: calls * 15_000n,
      cached_calls: calls / 2n,
      cached_cu: calls / 2n,
    });
    await store.db
      .insertInto("usage_hour")
      .values([
        line(a, "eth_call", 0n, 10n),
        line(a, "eth_call", 1n, 1n),
        line(a, "eth_getLogs", 1n, 2n),
        line(b, "eth_call", 23n, 4n),
        line(b, "eth_call", 24n, 99n),
      ])
      .execute();
    const all = await usageReport(store, { range: lastHours(24, NOW_MS), accountId: null });
    assert.deepEqual(
      all.by_method.map((it) => [it.method, it.calls, it.cu, it.usd]),
      [
        ["eth_call", 15, 45, usdText(225_000n)],
        ["eth_getLogs", 2, 6, usdText(30_000n)],
      ],
    );
    assert.deepEqual(
      all.by_key.map((it) => [it.name, it.key_prefix, it.calls]),
      [
        ["a", a.prefix, 13],
        ["b", b.prefix, 4],
      ],
    );
    assert.deepEqual(
      all.by_time.map((it) => it.calls),
      [4, 3, 10],
    );
    assert.equal(Date.parse(all.to) - Date.parse(all.from), DAY_MS);
    const cachedOf = (rows: readonly ReturnType<typeof usedView>[]) =>
      rows.map((row) => [row.cached_calls, row.cached_cu]);
    assert.deepEqual(
      [cachedOf(all.by_method), cachedOf(all.by_key), cachedOf(all.by_time)],
      [
        [
          [7, 7],
          [1, 1],
        ],
        [
          [6, 6],
          [2, 2],
        ],
        [
          [2, 2],
          [1, 1],
          [5, 5],
        ],
      ],
    );
    const one = await usageReport(store, { range: lastHours(1, NOW_MS), accountId: a.accountId });
    assert.deepEqual([one.by_method.length, one.by_key.length, one.by_time[0]?.calls], [1, 1, 10]);
    assert.deepEqual(
      (await usageReport(store, { range: lastHours(24, NOW_MS), accountId: "acc_none" })).by_time,
      [],
    );
  });

  test(`an account sees what its keys used, deleted ones included, a restricted token less, a key itself (${engine})`, async (t) => {
    const store = await open(t);
    const first = await createAccount(store, { ...UNCHOSEN, name: "first" }, NOW_MS);
    const { accountId } = first;
    const narrow = { defaultProfile: "mine", allowedProfiles: ["mine"] };
    const second = await addKey(
      store,
      { ...UNCHOSEN, accountId, agentId: null, name: "second", profiles: narrow, maxKeys: 5 },
      NOW_MS,
    );
    const other = await createAnonymousKey(store, { name: "other", grantN: 1n }, NOW_MS);
    assert.equal(second.kind, "new_key");
    if (second.kind !== "new_key") return;
    const hour = BigInt(Math.floor(NOW_MS / HOUR_MS));
    const line = (key: typeof first, method: string, ago: bigint, calls: bigint) => ({
      // A key keeps the usage of the account that it was claimed from.
      account_id: key === first ? "acc_before" : key.accountId,
      key_id: key.id,
      method,
      hour: hour - ago,
      calls,
      cu: calls * 3n,
      charge_n: calls * 15_000n,
      cached_calls: calls / 2n,
      cached_cu: calls / 2n,
    });
    await store.db
      .insertInto("usage_hour")
      .values([
        line(first, "eth_call", 0n, 10n),
        line(first, "eth_getLogs", 23n, 1n),
        line(first, "eth_call", 24n, 2n),
        line(second, "eth_call", 24n, 4n),
        line(second, "eth_call", 24n * 3n, 99n),
        line(other, "eth_call", 0n, 1_000n),
      ])
      .execute();
    await store.db
      .updateTable("api_key")
      .set({ revoked_at: BigInt(NOW_MS) })
      .where("id", "=", second.id)
      .execute();
    const read = (usage: UsageScope) => accountUsage(store, usage, { days: 3, nowMs: NOW_MS });
    const all = await read({ kind: "account", scope: { accountId, profiles: null } });
    assert.deepEqual(
      all.by_time.map((it) => [it.at, it.calls, it.cu, it.usd]),
      [
        ["2026-06-29T00:00:00.000Z", 6, 18, usdText(90_000n)],
        ["2026-06-30T00:00:00.000Z", 11, 33, usdText(165_000n)],
      ],
    );
    assert.deepEqual(
      all.by_method.map((it) => [it.method, it.calls]),
      [
        ["eth_call", 16],
        ["eth_getLogs", 1],
      ],
    );
    assert.deepEqual(
      all.by_key.map((it) => [it.name, it.calls, it.revoked]),
      [
        ["first", 13, false],
        ["second", 4, true],
      ],
    );
    assert.deepEqual(
      [all.by_time, all.by_method, all.by_key].map((rows) => rows.map((row) => row.cached_calls)),
      [
        [3, 5],
        [8, 0],
        [6, 2],
      ],
    );
    const restricted = await read({ kind: "account", scope: { accountId, profiles: ["mine"] } });
    assert.deepEqual(
      restricted.by_key.map((it) => it.name),
      ["second"],
    );
    const none = await read({ kind: "account", scope: { accountId, profiles: ["no-such"] } });
    assert.deepEqual([none.by_time, none.by_key], [[], []]);
    const own = await read({ kind: "key", keyId: first.id });
    assert.deepEqual([own.by_key.length, own.by_time.at(-1)?.calls], [1, 11]);
  });

  test(`the purchases of an account are its own and those of accounts that became part of it (${engine})`, async (t) => {
    const store = await open(t);
    const rows = [
      failedPurchase("pur_1", "acc_1"),
      failedPurchase("pur_2", "acc_2"),
      failedPurchase("pur_3", "acc_3"),
      failedPurchase("pur_4", "acc_1"),
    ];
    for (const [id, merged_into] of [
      ["acc_1", null],
      ["acc_2", "acc_1"],
      ["acc_3", null],
    ] as const)
      await store.db
        .insertInto("account")
        .values({
          ...{ id, kind: "account", balance_n: 0n, funded_n: 0n, first_paid_at: null },
          ...{ exhausted_at: null, merged_into, created_at: 1n },
        })
        .execute();
    await store.db.insertInto("purchase").values(rows).execute();
    const page = await purchasesOfAccount(store.db, "acc_1", { limit: 2, after: undefined });
    assert.deepEqual(
      [page.purchases.map(({ id }) => id), page.next],
      [["pur_4", "pur_2"], "pur_2"],
    );
    const rest = await purchasesOfAccount(store.db, "acc_1", { limit: 2, after: "pur_2" });
    assert.deepEqual([rest.purchases.map(({ id }) => id), rest.next], [["pur_1"], null]);

    const sent = { raw: null, wallet_id: null, nonce: null, created_at: 7n, passed_at: null };
    await store.db
      .insertInto("purchase_submission")
      .values([
        { purchase_id: "pur_4", position: 1n, tx_hash: "0x2", ...sent },
        { purchase_id: "pur_4", position: 0n, tx_hash: "0x1", ...sent },
      ])
      .execute();
    const everyone = { state: null, accountId: null, limit: 3, after: null };
    const all = await allPurchases(store, everyone);
    assert.deepEqual(
      [all.purchases.map(({ id }) => id), all.next],
      [["pur_4", "pur_3", "pur_2"], "pur_2"],
    );
    assert.deepEqual(all.purchases[0]?.transactions, [
      { tx_hash: "0x1", at: "1970-01-01T00:00:00.007Z" },
      { tx_hash: "0x2", at: "1970-01-01T00:00:00.007Z" },
    ]);
    assert.deepEqual(all.counts, { accepted: 0, submitted: 0, settled: 0, failed: 4 });
    const settled = await allPurchases(store, { ...everyone, state: "settled" });
    assert.deepEqual(settled.purchases, []);
    const third = await allPurchases(store, { ...everyone, accountId: "acc_3" });
    assert.deepEqual(
      third.purchases.map(({ id }) => id),
      ["pur_3"],
    );
  });

  test(`a store that is closed is trouble, a wrong statement is a bug (${engine})`, async (t) => {
    const store = await open(t);
    const failureOf = (run: Promise<unknown>): Promise<unknown> =>
      run.then(
        () => assert.fail("it worked"),
        (error: unknown) => error,
      );
    const { accountId } = await createAccount(store, UNCHOSEN, NOW_MS);
    const twice = store.db.insertInto("account").values({
      id: accountId,
      kind: "account",
      balance_n: 0n,
      funded_n: 0n,
      first_paid_at: null,
      exhausted_at: null,
      merged_into: null,
      created_at: 0n,
    });
    assert.equal(isStoreFailure(await failureOf(twice.execute())), false);
    assert.equal(isStoreFailure(new TypeError("x is not a function")), false);
    await store.close();
    assert.equal(isStoreFailure(await failureOf(accountById(store, accountId, NOW_MS))), true);
  });
});

test("an address may take its burst, then one at a time, and is told when", () => {
  const limit = new AddressLimit({ perSecond: 10 / 3_600, burst: 10 });
  for (let i = 0; i < 10; i++) assert.equal(limit.take("192.0.2.1", 5_000), 0);
  assert.equal(Math.round(limit.take("192.0.2.1", 5_000)), 360_000);
  assert.equal(limit.take("192.0.2.2", 5_000), 0);
  assert.equal(limit.take("192.0.2.1", 365_001), 0);
  assert.ok(limit.waitMs("192.0.2.1", 365_001) > 0);
  assert.equal(limit.waitMs("192.0.2.9", 0), 0);
});

test("addresses are kept within a bound, the oldest forgotten first", () => {
  const limit = new AddressLimit({ perSecond: 1, burst: 1 }, 100);
  for (let i = 0; i < 1_000; i++) assert.equal(limit.take(`10.0.${i >> 8}.${i & 255}`, 0), 0);
  assert.equal(limit.size, 100);
  assert.equal(limit.take("10.0.0.0", 0), 0);
  assert.ok(limit.take("10.0.3.231", 0) > 0, "the newest is remembered");
});

test("IPv6 addresses count by /64, however they are written", () => {
  for (const it of [
    "2001:db8:1:2::",
    "2001:db8:1:2::1",
    "2001:0DB8:0001:0002:ffff:ffff:ffff:ffff",
    "2001:db8:1:2:3:4:192.0.2.1",
    "2001:db8:1:2::%eth0",
  ])
    assert.equal(networkOf(it), "2001:db8:1:2::/64", it);
  for (const it of ["::", "::1", "0:0:0:0:0:0:0:9", "::192.0.2.1"])
    assert.equal(networkOf(it), "0:0:0:0::/64", it);
  assert.equal(networkOf("fe80::1:2:3:4"), "fe80:0:0:0::/64");
  assert.equal(networkOf("1::2:3:4:5:6:7"), "1:0:2:3::/64");
  assert.equal(networkOf("192.0.2.1"), "192.0.2.1");
  assert.equal(networkOf(""), "");
});
