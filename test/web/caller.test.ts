// Who counts as one caller: an account whatever its keys, an IPv4 address, or the /64 of an IPv6 address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { networkOf } from "../../src/web/caller.ts";

test("one customer of a network is an IPv4 address or the first half of an IPv6 address, however it is written", () => {
  for (const [address, network] of [
    ["192.0.2.7", "192.0.2.7"],
    ["2001:db8:0:1:aaaa:bbbb:cccc:dddd", "2001:db8:0:1"],
    ["2001:db8::1", "2001:db8:0:0"],
    ["2001:0DB8::1:2", "2001:db8:0:0"],
    ["2001:db8:1:2::", "2001:db8:1:2"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["", ""],
  ] as const)
    assert.equal(networkOf(address), network, address);
});
