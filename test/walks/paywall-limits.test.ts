// What one address may ask of the paywall, it may ask once: before operations of the API and before
// calls with a key together.
import assert from "node:assert/strict";
import { test } from "node:test";
import { realRuntime } from "../../src/runtime.ts";
import { startPaidService } from "../fakes/paid-service.ts";

/** Offers at one moment, as `web/payment/purchase-paywall.ts` has it. */
const OFFERS = 100;

test(
  "an address gets as many offers as it may have, wherever it asks for them, and then none " +
    "anywhere",
  async (t) => {
    const fixture = await startPaidService(({ rails }) => [rails.evm]);
    t.after(() => fixture.close());
    const { service } = fixture;
    const { key } = (await service.post("/api/v1/keys", {})).json;
    const ways = {
      key: () => service.post("/api/v1/agent/keys", { initial_fund_usd: "1" }),
      call: () =>
        service.post(`/rpc/k/${key}/load-balanced/ethereum`, {
          jsonrpc: "2.0",
          id: 1,
          method: "eth_gasPrice",
        }),
    };
    // The clock by which buckets fill stands still; timers stay real.
    const at = Math.ceil(realRuntime.now());
    const { mock } = t.mock.method(realRuntime, "now", () => at);
    const statuses = { key: [] as number[], call: [] as number[] };
    for (let asked = 0; asked < OFFERS + 20; asked++) {
      const way = asked % 2 === 0 ? "key" : "call";
      statuses[way].push((await ways[way]()).status);
    }
    mock.restore();
    const offered = [...statuses.key, ...statuses.call].filter((it) => it === 402).length;
    assert.equal(offered, OFFERS);
    assert.deepEqual(
      [statuses.key.slice(-10), statuses.call.slice(-10)],
      [Array(10).fill(429), Array(10).fill(429)],
    );
  },
);
