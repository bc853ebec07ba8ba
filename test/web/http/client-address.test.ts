// Where a request comes from: only trusted proxies are believed, and only for what stands right of
// the first stranger.
import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import {
  clientAddress,
  requestBaseUrl,
  trustedProxiesOf,
} from "../../../src/web/http/client-address.ts";

const PROXIES = trustedProxiesOf(["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);

function requestFrom(
  remoteAddress: string,
  headers: Readonly<Record<string, string>> = {},
): IncomingMessage {
  const socket = new Socket();
  Object.defineProperties(socket, {
    remoteAddress: { value: remoteAddress },
    localAddress: { value: "::ffff:127.0.0.1" },
    localPort: { value: 8545 },
  });
  const request = new IncomingMessage(socket);
  Object.assign(request.headers, headers);
  return request;
}

test("the caller is the nearest address that is no trusted proxy", () => {
  const of = (remote: string, forwarded?: string) =>
    clientAddress(
      requestFrom(remote, forwarded === undefined ? {} : { "x-forwarded-for": forwarded }),
      PROXIES,
    );
  assert.equal(of("203.0.113.5"), "203.0.113.5");
  assert.equal(of("203.0.113.5", "198.51.100.1"), "203.0.113.5", "strangers are not believed");
  assert.equal(of("10.1.1.1", "198.51.100.1"), "198.51.100.1");
  assert.equal(of("::ffff:10.1.1.1", "198.51.100.1:443"), "198.51.100.1");
  assert.equal(
    of("10.1.1.1", "1.1.1.1, 198.51.100.1, 192.0.2.7, 10.2.2.2"),
    "198.51.100.1",
    "what the caller wrote itself is not reached",
  );
  assert.equal(of("2001:db8::1", "1.1.1.1, [2a00::5]:1234"), "2a00::5");
  assert.equal(of("10.1.1.1"), "10.1.1.1");
  assert.equal(of("10.1.1.1", "not an address"), "10.1.1.1");
  assert.equal(of("10.1.1.1", "198.51.100.1, unknown"), "10.1.1.1");
  assert.equal(of("10.1.1.1", "10.2.2.2,".repeat(10_000)), "10.1.1.1");
  assert.equal(of("10.1.1.1", Array(10_000).fill("10.2.2.2").join(",")), "10.2.2.2");
  assert.equal(of(""), "");
});

test("the base URL is the host that the caller named, where it is a plain one", () => {
  const of = (
    host: string | undefined,
    more: Readonly<Record<string, string>> = {},
    remote = "203.0.113.5",
  ) =>
    requestBaseUrl(
      requestFrom(remote, { ...(host === undefined ? {} : { host }), ...more }),
      PROXIES,
    );
  assert.equal(of("rpc.example.com"), "http://rpc.example.com");
  assert.equal(of("RPC.example.com:8080"), "http://rpc.example.com:8080");
  assert.equal(of("[2001:db8::1]:80"), "http://[2001:db8::1]:80");
  for (const host of [
    undefined,
    "",
    "a/b",
    "a b",
    'a"b',
    "a@b",
    "a?b",
    "a#b",
    "<script>",
    "-a",
    "a-",
    "a:b",
    "a:123456",
    "x".repeat(300),
  ])
    assert.equal(of(host), "http://127.0.0.1:8545", host);
  assert.equal(
    of("a.example", { "x-forwarded-proto": "https" }),
    "http://a.example",
    "strangers are not believed",
  );
  assert.equal(of("a.example", { "x-forwarded-proto": "https" }, "10.1.1.1"), "https://a.example");
});
