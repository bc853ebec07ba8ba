// Filters that are paid for call by call: what each call costs, whose the filter is, and that
// nothing is lost or told twice when a payment is refused midway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type FakeChain, fakeChain, headerText, logText, wanted } from "../fakes/chain.ts";
import type { PaymentChains } from "../fakes/payment-chains.ts";
import type { Script } from "../fakes/upstream.ts";
import {
  callOf,
  chainsOfFile,
  rowOf,
  type SessionFixture,
  sessionFixture,
  stockClient,
  until,
} from "./session-fixture.ts";

const chains = await chainsOfFile();

const UNITS_PER_CU = 5n;

/** A node of this chain, over HTTP. */
function nodeOf(chain: FakeChain): Script {
  return ({ method, params }, reply) => {
    const [first] = Array.isArray(params) ? params : [];
    switch (method) {
      case "eth_getBlockByNumber":
        return reply.result(headerText(chain.tip()));
      case "eth_getBlockByHash": {
        const block = chain.byHash(first);
        return reply.result(block === undefined ? "null" : headerText(block));
      }
      case "eth_getLogs": {
        const block = chain.byHash(first?.blockHash) ?? chain.tip();
        return reply.result(
          `[${wanted(block, {})
            .map((log) => logText(block, log))
            .join(",")}]`,
        );
      }
      default:
        return reply.result("null");
    }
  };
}

/** A service over a chain of the test, and paid calls. */
async function fixtureOf(t: { after(run: () => Promise<void>): void }) {
  const chain = fakeChain(() => 0.5);
  const fixture = await sessionFixture(t, chains, { blockTimeMs: 400 });
  fixture.upstream.script(nodeOf(chain));
  return { chain, fixture };
}

/** A stock client that pays, and the statuses of its requests. */
function payer(fixture: SessionFixture, wallet: PaymentChains["payer"]) {
  const statuses: number[] = [];
  const watched: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (String(input).includes("/rpc/session/")) statuses.push(response.status);
    return response;
  };
  const { manager } = stockClient(fixture.chains, wallet, { fetch: watched });
  const ask = async (method: string, ...params: readonly unknown[]) => {
    const response = await manager.fetch(fixture.url(), callOf(method, 1, params));
    return {
      status: response.status,
      cu: response.headers.get("x-svc-cu"),
      usd: response.headers.get("x-svc-usd"),
      json: JSON.parse(await response.text()),
    };
  };
  const spent = async (): Promise<bigint> =>
    (await rowOf(fixture, manager.channelId ?? "")).spent_units;
  return { manager, statuses, ask, spent };
}

async function ended(fixture: SessionFixture, reason: string): Promise<number> {
  return metric(fixture, `svc_filters_ended_total\\{[^}]*reason="${reason}"\\}`);
}

async function openFilters(fixture: SessionFixture): Promise<number> {
  return metric(fixture, 'svc_filters\\{[^}]*kind="blocks"\\}');
}

/** The first sample whose name and labels match; 0 = there is none. */
async function metric({ service }: SessionFixture, pattern: string): Promise<number> {
  const { text } = await service().get("/metrics");
  return Number(new RegExp(`^${pattern} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

test(
  "each call of a filter is paid for once by its weight, an unknown filter costs nothing, and " +
    "nobody gets one unpaid",
  async (t) => {
    const { chain, fixture } = await fixtureOf(t);
    const unpaid = await fetch(fixture.url(), callOf("eth_newBlockFilter"));
    assert.equal(unpaid.status, 402);
    const { ask, spent } = payer(fixture, chains.payer);
    let paid = 0n;
    const costs = async (cu: number, method: string, ...params: readonly unknown[]) => {
      const answer = await ask(method, ...params);
      paid += BigInt(cu) * UNITS_PER_CU;
      assert.deepEqual(
        [answer.status, answer.cu, answer.usd],
        [200, String(cu), `0.${String(cu * 5).padStart(6, "0")}`.replace(/0+$/, "")],
        method,
      );
      assert.equal(await spent(), paid, method);
      return answer.json.result;
    };
    const id = await costs(3, "eth_newBlockFilter");
    chain.mine();
    const hashes: string[] = [];
    while (hashes.length === 0) hashes.push(...(await costs(5, "eth_getFilterChanges", id)));
    assert.deepEqual(hashes, [chain.tip().hash]);
    const logs = await costs(5, "eth_newFilter", {});
    assert.equal(
      (await costs(15, "eth_getFilterLogs", logs)).length,
      wanted(chain.tip(), {}).length,
    );
    assert.equal(await costs(3, "eth_uninstallFilter", id), true);
    for (const method of ["eth_getFilterChanges", "eth_getFilterLogs"]) {
      const { usd, json } = await ask(method, id);
      assert.deepEqual([json.error.message, usd], ["filter not found", "0"]);
    }
    assert.equal(await spent(), paid);
  },
);

test(
  "where a channel closes elsewhere, a poll is refused and its changes stay for the next one, and " +
    "no filter is created",
  async (t) => {
    const { chain, fixture } = await fixtureOf(t);
    const [one, other] = [
      payer(fixture, chains.payer),
      payer(fixture, chains.otherPayers[0] ?? chains.payer),
    ];
    const id = (await one.ask("eth_newBlockFilter")).json.result;
    const polls = async () => (await fixture.service().get("/metrics")).text;
    chain.mine();
    await until(
      async () => /^svc_filter_unread_bytes [1-9]/m.test(await polls()),
      "the block is in the filter",
    );
    // Another instance closes the channel: the hold for the call finds that in the channel's row.
    fixture.setChannelState(one.manager.channelId ?? "", "closing");
    const before = one.statuses.length;
    const refused = await one.ask("eth_getFilterChanges", id).catch(() => null);
    assert.equal(one.statuses[before], 402);
    const told =
      refused?.status === 200
        ? refused.json.result
        : (await other.ask("eth_getFilterChanges", id)).json.result;
    assert.deepEqual(told, [chain.tip().hash]);
    assert.deepEqual((await other.ask("eth_getFilterChanges", id)).json.result, []);

    const second = payer(fixture, chains.otherPayers[1] ?? chains.payer);
    const kept = (await second.ask("eth_newBlockFilter")).json.result;
    fixture.setChannelState(second.manager.channelId ?? "", "closing");
    const at = second.statuses.length;
    const open = await openFilters(fixture);
    assert.ok(open > 0);
    await second.ask("eth_newBlockFilter").catch(() => null);
    assert.equal(second.statuses[at], 402);
    assert.equal(await ended(fixture, "unclaimed"), 0);
    assert.equal(await openFilters(fixture), open);
    assert.deepEqual(
      (await other.ask("eth_getFilterChanges", kept)).json.result,
      [],
      "the filters before it live on",
    );
    assert.equal(await one.spent(), 3n * UNITS_PER_CU, "what was refused was not charged");
  },
);
