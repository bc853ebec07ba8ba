// What nodes may send to providers, as rows of a real store: shares are raised by one process at a
// time, and credits are never handed out twice, however many processes ask at the same time.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { OtherShare } from "../../src/core/workers/share-book.ts";
import { leaseCredits, returnCredits } from "../../src/shared/leases/stored-quotas.ts";
import { storedShares } from "../../src/shared/leases/stored-shares.ts";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import { eachStore } from "../fakes/stores.ts";

const LIMITS = { daily: 100, monthly: 250, resetsOn: 1 };
const entry = (scope: string, share: number) => ({ scope, share, used: 1, wanted: 2.5 });

eachStore(({ engine, open }) => {
  test(`a process reads what others wrote of the same bounds, and its own is not in it (${engine})`, async (t) => {
    const store = await open(t);
    const [a, b] = [storedShares(store, "a"), storedShares(store, "b")];
    assert.deepEqual(await a.write([entry("x", 3), entry("y", 4)]), []);
    const others = await b.write([entry("y", 5), entry("z", 6)]);
    const shown = ({ scope, process, share, used, wanted }: OtherShare) => [
      ...[scope, process, share, used, wanted],
    ];
    assert.deepEqual(others.map(shown), [["y", "a", 4, 1, 2.5]]);
    const [other = assert.fail()] = others;
    assert.ok(other.ageMs >= 0 && other.ageMs < 60_000, `${other.ageMs}`);
    await a.write([entry("y", 7)]);
    await b.remove([{ ...other, writtenAt: other.writtenAt - 1 }]);
    assert.deepEqual((await b.write([entry("y", 5)])).map(shown), [["y", "a", 7, 1, 2.5]]);
    const now = await b.write([entry("y", 5)]);
    await b.remove(now);
    assert.deepEqual(await b.write([entry("y", 5)]), []);
    assert.deepEqual(await b.write([]), []);
    assert.equal(await removeOld(store, "provider_share"), false);
    assert.equal((await a.write([entry("y", 1)])).length, 1, "what is young stays");
  });

  test(`a share is raised by one process at a time (${engine})`, async (t) => {
    const store = await open(t);
    const books = Array.from({ length: 6 }, (_, n) => storedShares(store, `p${n}`));
    const total = 10;
    let refused = 0;
    // Each takes one of what is left, at the same time as all others.
    for (let round = 0; round < 8; round++)
      await Promise.all(
        books.map(async (book, n) => {
          const own = round;
          const raised = await book.raise(["x"], (others) => {
            const held = others.reduce((sum, { share }) => sum + share, 0);
            return [entry("x", Math.min(own, Math.max(0, total - held)))];
          });
          if (raised === null) refused += 1;
          else assert.equal(raised.length, 1, `p${n}`);
        }),
      );
    const others = await storedShares(store, "reader").write([entry("x", 0)]);
    const sum = others.reduce((all, { share }) => all + share, 0);
    assert.ok(sum > 0 && sum <= total, `${sum} of ${total}; ${refused} came in between`);
  });

  test(`credits are handed out once, to those who ask first (${engine})`, async (t) => {
    const store = await open(t);
    const request = { key: "set p", limits: LIMITS, credits: 16 };
    const leases = await Promise.all(
      Array.from({ length: 10 }, () => leaseCredits(store, request)),
    );
    const granted = leases.map(({ credits }) => credits).sort((a, b) => b - a);
    assert.deepEqual(granted, [16, 16, 16, 16, 16, 16, 4, 0, 0, 0]);
    const [lease = assert.fail()] = leases.filter(({ credits }) => credits === 16);
    await returnCredits(store, "set p", { ...lease, credits: 6 });
    const again = await leaseCredits(store, request);
    assert.deepEqual([again.credits, again.daySpent, again.monthSpent], [6, 100, 100]);
    // Of a day that is over nothing comes back to this one.
    await returnCredits(store, "set p", { ...lease, dayMs: 0, credits: 5 });
    const day = await leaseCredits(store, request);
    assert.deepEqual([day.credits, day.daySpent, day.monthSpent], [0, 100, 95]);
    const other = await leaseCredits(store, { ...request, key: "set q", credits: 1_000 });
    assert.equal(other.credits, 100);
    assert.equal(await removeOld(store, "provider_quota"), false);
    assert.equal((await leaseCredits(store, request)).daySpent, 100, "what is young stays");
  });
});
