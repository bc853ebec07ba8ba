// Who runs a provider, by the host of its address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "tldts";
import { operatorOf, tipOperatorOf } from "../../../src/core/provider/operator.ts";

const operatorAt = (url: string | null, wsUrl: string | null = null): string =>
  operatorOf({ url, wsUrl }, parse);

test("an operator is the registrable domain of the host", () => {
  for (const [url, operator] of [
    ["https://eth-mainnet.g.alchemy.com/v2/key", "alchemy.com"],
    ["https://base.g.alchemy.com:8443/", "alchemy.com"],
    ["https://ALCHEMY.com./", "alchemy.com"],
    ["https://rpc.node.example.co.uk/", "example.co.uk"],
    ["https://user:password@rpc.example.com/", "example.com"],
    ["https://my_node.example.com/", "example.com"],
    ["https://-a.example.com/", "example.com"],
    ["https://xn--bse-sna.de/", "xn--bse-sna.de"],
  ] as const)
    assert.equal(operatorAt(url), operator, url);
});

test("customers of a company that hands out names are operators by themselves", () => {
  assert.equal(operatorAt("https://one.github.io/"), "one.github.io");
  assert.equal(operatorAt("https://rpc.two.github.io/"), "two.github.io");
  assert.equal(operatorAt("https://github.io/"), "github.io");
});

test("the WebSocket's host counts where there is no other", () => {
  assert.equal(operatorAt(null, "wss://ws.example.com/"), "example.com");
  assert.equal(operatorAt("https://a.example.org/", "wss://ws.example.com/"), "example.org");
});

test("hosts without a public suffix are one operator", () => {
  const hosts = [
    ...["localhost", "127.0.0.1", "10.1.2.3", "8.8.8.8", "[::1]", "[2001:db8::1]"],
    ...["geth", "node", "dev", "com", "geth.internal", "ip-10-0-0-1.ec2.internal", "mac.local"],
    ...["geth.eth.svc.cluster.local", "node.lan", "pi.home.arpa", "1.0.0.127.in-addr.arpa"],
  ];
  for (const host of hosts) assert.equal(operatorAt(`http://${host}:8545/`), "own", host);
  assert.equal(operatorAt(null), "own");
});

test("own nodes count one by one for the tip, all others by their operator", () => {
  const tipOperators = [
    { operator: "own", id: "a" },
    { operator: "own", id: "b" },
    { operator: "alchemy.com", id: "c" },
    { operator: "alchemy.com", id: "d" },
  ].map(tipOperatorOf);
  assert.deepEqual(tipOperators, ["own a", "own b", "alchemy.com", "alchemy.com"]);
});
