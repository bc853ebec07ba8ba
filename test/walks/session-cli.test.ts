// Pay-per-call with mppx's own command line, as a newcomer would: two calls over one channel, then
// its end.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { SESSION } from "../../src/devnet/payments/wallets.ts";
import { EvmNode } from "../../src/payments/rails/evm/node.ts";
import { reconcile } from "../../src/payments/reconcile/reconcile.ts";
import { recordsAt } from "../../src/payments/reconcile/records.ts";
import { realRuntime } from "../../src/runtime.ts";
import { assertBooked, paymentChains, sessionFixture } from "./session-fixture.ts";

const run = promisify(execFile);
const CLI = new URL("../../node_modules/mppx/dist/bin.js", import.meta.url).pathname;

test("mppx on the command line pays for two calls over one channel and closes it", async (t) => {
  const startedMs = Date.now();
  const chains = await paymentChains(t);
  const fixture = await sessionFixture(t, chains);
  const home = mkdtempSync(join(tmpdir(), "svc-mppx-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    NO_COLOR: "1",
    MPPX_PRIVATE_KEY: chains.payer.key,
  };
  const mppx = async (...args: readonly string[]) =>
    run(process.execPath, [CLI, ...args, "-r", chains.tempo.rpcUrl], { env });
  const call = (id: number) =>
    mppx(
      fixture.url(),
      "-X",
      "POST",
      "-J",
      JSON.stringify({ jsonrpc: "2.0", id, method: "eth_gasPrice", params: [] }),
    );
  assert.equal(JSON.parse((await call(1)).stdout).result, "0x1");
  assert.equal(JSON.parse((await call(2)).stdout).id, 2);
  const [channel, ...others] = await fixture.peek((store) =>
    store.db.selectFrom("session_channel").selectAll().execute(),
  );
  assert.deepEqual([others.length, channel?.spent_units, channel?.calls], [0, 30n, 2n]);
  await mppx("sessions", "close", channel?.id ?? "");
  await fixture.read(async (store) => {
    assert.equal((await assertBooked(store)).settledUnits, 30n);
    // The chain, asked by itself, says the same.
    const { chainId, rpcUrl, token } = chains.tempo;
    const node = new EvmNode({ rpcUrl, chainId, runtime: realRuntime });
    const at = { token: token.address, recipient: SESSION.address };
    const records = recordsAt({ store, chainId, network: await node.network(), ...at });
    const report = await reconcile({
      receiver: { node, ...at, confirmations: 0 },
      records,
      sinceMs: startedMs,
      onProgress: () => {},
    });
    assert.deepEqual([report.movedUnits, report.recordedUnits, report.differences], [30n, 30n, []]);
  });
});
