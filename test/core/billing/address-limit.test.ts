// Limits by network address: nobody gets more by using more addresses of one network, nobody pays
// for a stranger, and memory is bounded.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AddressLimit, networkOf } from "../../../src/core/billing/address-limit.ts";

const SIZE = { perSecond: 1, burst: 3 };
const START_MS = 1_000_000;

test("all addresses of one IPv6 network count as one, those of another and IPv4 for themselves", () => {
  const same = [
    "2001:db8:0:1::1",
    "2001:DB8::1:0:0:0:2",
    "2001:0db8:0000:0001:ffff:ffff:ffff:ffff",
    "2001:db8:0:1::%eth0",
    "2001:db8:0:1:1:1:192.0.2.1",
  ];
  assert.deepEqual(new Set(same.map(networkOf)), new Set(["2001:db8:0:1::/64"]));
  assert.equal(networkOf("2001:db8:0:2::1"), "2001:db8:0:2::/64");
  assert.equal(networkOf("::1"), "0:0:0:0::/64");
  assert.equal(networkOf("192.0.2.1"), "192.0.2.1");
  assert.equal(networkOf("not:an:address"), "not:an:address");
});

test("property: every way to write an address counts as one network", () => {
  const group = fc.integer({ min: 0, max: 0xffff });
  const groups = fc.array(group, { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(groups, (numbers) => {
      const plain = numbers.map((number) => number.toString(16));
      const padded = plain.map((text) => text.padStart(4, "0").toUpperCase()).join(":");
      const network = networkOf(plain.join(":"));
      assert.equal(networkOf(padded), network);
      assert.equal(networkOf([...plain.slice(0, 4), "0", "0", "0", "1"].join(":")), network);
      assert.equal(networkOf(`${plain.slice(0, 4).join(":")}::1`), network);
    }),
  );
});

test("property: no network takes more than its burst and its rate, whatever others take", () => {
  const takes = fc.array(
    fc.record({ address: fc.nat({ max: 3 }), gapMs: fc.nat({ max: 2_000 }) }),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(takes, (all) => {
      const limit = new AddressLimit(SIZE);
      const taken = new Map<number, number>();
      let nowMs = START_MS;
      for (const { address, gapMs } of all) {
        nowMs += gapMs;
        const told = limit.waitMs(`192.0.2.${address}`, nowMs);
        const waitMs = limit.take(`192.0.2.${address}`, nowMs);
        assert.equal(waitMs === 0, told === 0, "what is told beforehand is what happens");
        if (waitMs === 0) taken.set(address, (taken.get(address) ?? 0) + 1);
      }
      for (const count of taken.values())
        assert.ok(count <= SIZE.burst + (nowMs - START_MS) / 1_000 + 1);
    }),
  );
});

test("one that was given back may be taken again", () => {
  const limit = new AddressLimit(SIZE);
  for (let n = 0; n < 3; n++) assert.equal(limit.take("192.0.2.1", START_MS), 0);
  assert.ok(limit.take("192.0.2.1", START_MS) > 0);
  limit.giveBack("192.0.2.1");
  assert.equal(limit.take("192.0.2.1", START_MS), 0);
  limit.giveBack("192.0.2.9");
  assert.equal(limit.size, 1, "an address that took nothing has nothing to give back");
});

test("a million addresses leave a bounded number behind, the latest ones", () => {
  const limit = new AddressLimit({ perSecond: 1, burst: 1 }, 100);
  for (let n = 0; n < 10_000; n++)
    limit.take(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, START_MS);
  assert.equal(limit.size, 100);
  assert.ok(limit.waitMs("10.0.39.15", START_MS) > 0);
  assert.equal(limit.waitMs("10.0.0.0", START_MS), 0);
});
