// Connections over the store: decided once, handed out once, within what the approver may give;
// over when time or their owner says so.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Owner } from "../../../src/hosted/accounts/accounts.ts";
import {
  connectionToDecide,
  type Decision,
  decideConnection,
  listConnections,
  MAX_CONNECTIONS,
  narrowed,
  pollConnection,
  type Restrictions,
  requestConnection,
  revokeConnection,
} from "../../../src/hosted/accounts/connections.ts";
import { createAccount } from "../../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../../src/hosted/keys/key-fields.ts";
import {
  managementTokenBySecret,
  managementTokenEnd,
} from "../../../src/hosted/keys/management-token.ts";
import { newSecret } from "../../../src/secrets/secret.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { eachStore } from "../../fakes/stores.ts";

const NOW_MS = 1_700_000_000_000;
const FREE = { profiles: null, readOnly: false, expiresAtMs: null };
const owner = (accountId: string): Owner => ({
  kind: "owner",
  accountId,
  profiles: null,
  manages: true,
  expiresAtMs: null,
});
const approve = (accountId: string, restrictions: Restrictions = FREE): Decision => ({
  kind: "approve",
  owner: owner(accountId),
  restrictions,
});

async function request(store: Store, nowMs = NOW_MS) {
  const made = await requestConnection(store, "a program", nowMs);
  assert.ok(made.kind === "new_connection");
  return made;
}

async function statusOf(
  store: Store,
  made: { readonly id: string; readonly token: string },
  nowMs: number,
) {
  const polled = await pollConnection(store, made, nowMs);
  return polled.kind === "polled" ? polled.status : polled.code;
}

test(
  "nobody gives more than they have: profiles and times narrow, and a key gives leave to read " +
    "at most",
  () => {
    const bound: Owner = { ...owner("acc"), profiles: ["a", "b"], expiresAtMs: 100 };
    assert.deepEqual(narrowed(FREE, bound), {
      profiles: ["a", "b"],
      readOnly: false,
      expiresAtMs: 100,
    });
    assert.deepEqual(narrowed({ profiles: ["b", "c"], readOnly: true, expiresAtMs: 50 }, bound), {
      profiles: ["b"],
      readOnly: true,
      expiresAtMs: 50,
    });
    assert.deepEqual(
      narrowed({ ...FREE, profiles: ["c"] }, bound).profiles,
      [],
      "nothing in common is nothing, not everything",
    );
    assert.equal(narrowed(FREE, { ...owner("acc"), manages: false }).readOnly, true);
    assert.deepEqual(narrowed(FREE, owner("acc")), FREE);
  },
);

eachStore(({ engine, open }) => {
  const somebody = (store: Store) => createAccount(store, UNCHOSEN, NOW_MS);

  test(`an approved connection hands its token to the first poll and never again (${engine})`, async (t) => {
    const store = await open(t);
    const { accountId } = await somebody(store);
    const made = await request(store);
    assert.equal(await statusOf(store, made, NOW_MS), "pending");
    assert.equal(await statusOf(store, made, NOW_MS + 4_999), "rate_limited");
    await decideConnection(
      store,
      {
        approval: made.approval,
        decision: approve(accountId, {
          profiles: null,
          readOnly: true,
          expiresAtMs: NOW_MS + 60_000,
        }),
      },
      NOW_MS,
    );
    const polls = await Promise.all(
      Array.from({ length: 5 }, () => pollConnection(store, made, NOW_MS + 5_000)),
    );
    const tokens = polls.flatMap((it) =>
      it.kind === "polled" && it.token !== null ? [it.token] : [],
    );
    assert.equal(tokens.length, 1);
    assert.equal(
      polls.filter((it) => it.kind === "api_fault" && it.code === "rate_limited").length,
      4,
    );
    const again = await pollConnection(store, made, NOW_MS + 10_000);
    assert.deepEqual(again, { kind: "polled", status: "approved", token: null });
    const agent = await managementTokenBySecret(store, tokens[0] ?? "");
    assert.deepEqual(
      [agent?.accountId, agent?.readOnly, agent?.expiresAtMs, agent?.name],
      [accountId, true, NOW_MS + 60_000, "a program"],
    );
    assert.equal(
      await statusOf(store, made, NOW_MS + 86_400_000),
      "approved",
      "what was handed out does not expire with the request",
    );
    assert.equal((await listConnections(store, accountId, NOW_MS)).length, 1);
    const kept = JSON.stringify(
      await store.db.selectFrom("connection").selectAll().execute(),
      (_, it) => (typeof it === "bigint" ? 0 : it),
    );
    for (const secret of [made.token, made.approval, tokens[0] ?? ""])
      assert.ok(!kept.includes(secret.slice(7)));
  });

  test(`of several who decide at once one does (${engine})`, async (t) => {
    const store = await open(t);
    const people = await Promise.all([somebody(store), somebody(store), somebody(store)]);
    const made = await request(store);
    const decisions: readonly Decision[] = [
      ...people.map((it) => approve(it.accountId)),
      { kind: "deny" },
    ];
    const done = await Promise.all(
      decisions.map((decision) =>
        decideConnection(store, { approval: made.approval, decision }, NOW_MS),
      ),
    );
    assert.equal(done.filter((it) => typeof it === "object").length, 1);
    assert.equal(done.filter((it) => it === "decided").length, 3);
  });

  test(
    "time ends a connection that nobody decides or fetches, also when the clock steps back " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      const { accountId } = await somebody(store);
      const [first, second, third] = [
        await request(store),
        await request(store),
        await request(store),
      ];
      assert.equal(
        (await connectionToDecide(store, first.approval, NOW_MS + 899_999))?.status,
        "pending",
      );
      assert.equal(
        (await connectionToDecide(store, first.approval, NOW_MS + 900_000))?.status,
        "expired",
      );
      assert.equal(
        (await connectionToDecide(store, first.approval, NOW_MS - 3_600_000))?.status,
        "expired",
      );
      const late = await decideConnection(
        store,
        { approval: first.approval, decision: approve(accountId) },
        NOW_MS + 900_000,
      );
      assert.equal(late, "decided");
      await decideConnection(
        store,
        { approval: second.approval, decision: approve(accountId) },
        NOW_MS + 899_000,
      );
      assert.equal(
        await statusOf(store, second, NOW_MS + 899_000 + 900_000),
        "expired",
        "the token was not fetched in time",
      );
      await decideConnection(
        store,
        { approval: third.approval, decision: { kind: "deny" } },
        NOW_MS,
      );
      assert.equal(await statusOf(store, third, NOW_MS), "denied");
      assert.equal(
        await statusOf(store, { ...third, id: first.id }, NOW_MS + 9_000),
        "not_found",
        "a token is of one connection",
      );
      assert.equal(
        await statusOf(store, { ...third, token: newSecret("connection") }, NOW_MS),
        "not_found",
      );
      await request(store, NOW_MS + 3 * 86_400_000);
      const left = await store.db
        .selectFrom("connection")
        .select("id")
        .where("state", "!=", "approved")
        .execute();
      assert.equal(left.length, 1, "what ended long ago is forgotten");
    },
  );

  test(`a revoked connection ends its agent, before and after its token was fetched (${engine})`, async (t) => {
    const store = await open(t);
    const [person, other] = [await somebody(store), await somebody(store)];
    const [early, late] = [await request(store), await request(store)];
    for (const it of [early, late])
      await decideConnection(
        store,
        { approval: it.approval, decision: approve(person.accountId) },
        NOW_MS,
      );
    const polled = await pollConnection(store, late, NOW_MS);
    assert.ok(polled.kind === "polled" && polled.token !== null);
    const ref = (id: string, accountId = person.accountId) => ({ id, accountId });
    assert.equal(await revokeConnection(store, ref(late.id, other.accountId), NOW_MS), "unknown");
    for (const it of [early, late, late])
      assert.equal(await revokeConnection(store, ref(it.id), NOW_MS), "revoked");
    const agent = await managementTokenBySecret(store, polled.token);
    assert.ok(agent !== null && managementTokenEnd(agent, NOW_MS) === "revoked");
    assert.equal(await statusOf(store, early, NOW_MS), "denied");
    assert.deepEqual(await listConnections(store, person.accountId, NOW_MS), []);
    assert.equal(
      await decideConnection(
        store,
        { approval: early.approval, decision: approve(other.accountId) },
        NOW_MS,
      ),
      "decided",
    );
  });

  test(`an account has so many connections and no more (${engine})`, async (t) => {
    const store = await open(t);
    const { accountId } = await somebody(store);
    for (let i = 0; i < MAX_CONNECTIONS; i++) {
      const { approval } = await request(store);
      await decideConnection(store, { approval, decision: approve(accountId) }, NOW_MS);
    }
    const { approval } = await request(store);
    assert.equal(
      await decideConnection(store, { approval, decision: approve(accountId) }, NOW_MS),
      "full",
    );
    assert.equal((await connectionToDecide(store, approval, NOW_MS))?.status, "pending");
    // A quarter of an hour later nobody can fetch their tokens any more.
    const laterMs = NOW_MS + 16 * 60_000;
    const later = await request(store, laterMs);
    assert.equal(
      typeof (await decideConnection(
        store,
        { approval: later.approval, decision: approve(accountId) },
        laterMs,
      )),
      "object",
    );
  });
});
