// Where a key may stand, which one counts, and that the URL behind this does not hold it any more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDirectives } from "../../../src/web/rpc/directives.ts";

const read = (url: string, headers: Readonly<Record<string, string>> = {}) => {
  const { secret, url: rest } = readDirectives(url, (name) => headers[name]);
  return [secret, rest];
};

test("a key in the path leaves the form without it", () => {
  assert.deepEqual(read("/rpc/k/K/fastest/ethereum?include_meta=body"), [
    "K",
    "/rpc/fastest/ethereum?include_meta=body",
  ]);
  assert.deepEqual(read("/rpc/k/K/ethereum"), ["K", "/rpc/ethereum"]);
  assert.deepEqual(read("/rpc/k/K/profile/public/ethereum"), ["K", "/rpc/profile/public/ethereum"]);
});

test("paths that break off behind the key lead nowhere, and the key is out of them all the same", () => {
  assert.deepEqual(read("/rpc/k/K"), ["K", "/rpc/"]);
  assert.deepEqual(read("/rpc/k/K/"), ["K", "/rpc/"]);
  assert.deepEqual(read("/rpc/k/K?x=/y"), ["K", "/rpc/?x=/y"]);
  assert.deepEqual(read("/rpc/k/"), ["", "/rpc/"]);
});

test("?key= is taken out of the query and nothing else is", () => {
  assert.deepEqual(read("/rpc/ethereum?key=K"), ["K", "/rpc/ethereum"]);
  assert.deepEqual(read("/rpc/ethereum?a=1&key=K&b=2&key=L"), ["K", "/rpc/ethereum?a=1&b=2"]);
  assert.deepEqual(read("/rpc/ethereum?monkey=K"), [null, "/rpc/ethereum?monkey=K"]);
});

test("headers: Bearer in any letter case, also beside another scheme, then X-Svc-Api-Key", () => {
  assert.deepEqual(read("/rpc/1", { authorization: "bEaReR K" }), ["K", "/rpc/1"]);
  assert.deepEqual(read("/rpc/1", { authorization: "Payment abc, Bearer K" }), ["K", "/rpc/1"]);
  assert.deepEqual(read("/rpc/1", { authorization: "Basic abc", "x-svc-api-key": "L" }), [
    "L",
    "/rpc/1",
  ]);
  assert.deepEqual(read("/rpc/1", {}), [null, "/rpc/1"]);
});

test("path before query before Bearer before X-Svc-Api-Key", () => {
  const headers = { authorization: "Bearer C", "x-svc-api-key": "D" };
  assert.equal(read("/rpc/k/A/1?key=B", headers)[0], "A");
  assert.equal(read("/rpc/1?key=B", headers)[0], "B");
  assert.equal(read("/rpc/1", headers)[0], "C");
});
