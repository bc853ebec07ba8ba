// Nobody shuts others out by connections left open: an address with a quarter of them gets no more
// once three quarters are taken. Proxies and programs on this machine are not bound.
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { trustedProxiesOf } from "../../../src/web/http/client-address.ts";
import { ConnectionShares } from "../../../src/web/server/connection-shares.ts";

/** A connection from an address; nothing is behind it. */
function from(address: string): Socket {
  return Object.defineProperty(new Socket(), "remoteAddress", { value: address });
}

test("an address takes three quarters of all connections at most, others get the rest", () => {
  const shares = new ConnectionShares(400, trustedProxiesOf(["10.0.0.0/8"]));
  const taken = Array.from({ length: 400 }, () => from("203.0.113.7")).filter((it) =>
    shares.takes(it),
  );
  assert.equal(taken.length, 300);
  for (let n = 0; n < 50; n++) assert.ok(shares.takes(from(`198.51.100.${n}`)));
  assert.ok(!shares.takes(from("::ffff:203.0.113.7")), "however it is written");
  for (let n = 0; n < 60; n++) shares.takes(from(`2001:db8::${n}`));
  for (let n = 0; n < 60; n++) shares.takes(from(`2001:db8::1:${n}`));
  assert.ok(!shares.takes(from("2001:db8::2:1")), "a network of IPv6 is one address");
  for (const address of ["127.0.0.1", "::1", "10.1.2.3"])
    for (let n = 0; n < 120; n++) assert.ok(shares.takes(from(address)));
});

test("a connection that closes makes room for another one of its address", () => {
  const shares = new ConnectionShares(8, trustedProxiesOf([]));
  const own = Array.from({ length: 6 }, () => from("203.0.113.7"));
  assert.ok(own.every((it) => shares.takes(it)));
  assert.ok(!shares.takes(from("203.0.113.7")));
  own[0]?.emit("close");
  assert.ok(shares.takes(from("203.0.113.7")));
  assert.ok(!shares.takes(from("203.0.113.7")));
});
