// What the log tells an operator of a bad day: circuits, cordons and subscriptions that moved, one
// line each, and failures with their cause and a count.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "../fakes/service.ts";
import { serviceFixture, until } from "../fakes/service-fixture.ts";
import { socketFixture, subscribe, told } from "../fakes/socket-fixture.ts";

type Line = Readonly<Record<string, unknown>>;

/** The log's lines with this text. */
function linesOf(service: Service, msg: string): readonly Line[] {
  const lines: readonly Line[] = service
    .log()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  return lines.filter((line) => line["msg"] === msg);
}

test("a circuit that opens is one line with provider and cause, after any number of failures", async (t) => {
  const { call, service, upstreams } = await serviceFixture(t, [undefined, undefined]);
  await service.probed();
  upstreams[0]?.script((_, reply) => reply.body("", 500));
  for (let n = 0; n < 20; n++) assert.equal((await call("eth_gasPrice")).json.result, "0x1");
  const opened = linesOf(service, "circuit opened");
  assert.deepEqual(
    opened.map(({ profile, chain, provider, transport, cause }) => ({
      profile,
      chain,
      provider,
      transport,
      cause,
    })),
    [{ profile: "team", chain: "ethereum", provider: "a", transport: "http", cause: "server" }],
  );
  const retried = linesOf(service, "request took more than one attempt");
  assert.ok(retried.length > 0 && retried.length <= 3, `${retried.length} lines`);
  assert.match(String(retried[0]?.["cause"]), /team on ethereum: a server/);
});

test("a provider of another chain is cordoned, and may be asked again: one line each", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined], {
    set: { monitoring: { probe_interval_ms: 20 } },
  });
  await service.probed();
  upstreams[0]?.probesSay({ chainId: 5, height: 100 });
  await until("the cordon", () => linesOf(service, "provider cordoned").length > 0);
  upstreams[0]?.probesSay({ chainId: 1, height: 100 });
  await until("its end", () => linesOf(service, "provider may be asked again").length > 0);
  assert.deepEqual(
    linesOf(service, "provider cordoned").map(({ provider, cause }) => [provider, cause]),
    [["a", "wrong_chain"]],
  );
});

test("a subscription that moved is one line with where it went and why", async (t) => {
  const { nodes, open, mine, service, listening } = await socketFixture(t, ["ws", "ws"]);
  await listening();
  const client = await open();
  const id = await subscribe(client, "newHeads");
  mine();
  await told(client, id, 1);
  nodes[0]?.ws.refuse({ status: 503 });
  nodes[0]?.ws.drop();
  const [line] = await until("the move", () => {
    const lines = linesOf(service, "subscription moved to another provider");
    return lines.length > 0 ? lines : null;
  });
  assert.deepEqual(
    [line?.["profile"], line?.["kind"], line?.["to"], line?.["reason"]],
    ["team", "newHeads", "b", "lost"],
  );
});

test("a key that was sent as the name of a method is not in the log", async (t) => {
  const { call, service, upstreams } = await serviceFixture(t, [undefined, undefined]);
  upstreams[0]?.script((_, reply) => reply.body("", 429));
  const key = `svc_ak_${"Qm7x9Zr2Lw4t".repeat(4)}`;
  await call(key);
  const lines = linesOf(service, "request took more than one attempt");
  assert.equal(lines.length, 1);
  assert.ok(!service.log().includes(key), String(lines[0]?.["method"]));
});
