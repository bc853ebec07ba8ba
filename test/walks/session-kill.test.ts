// Pay-per-call of a process that is killed while a stock client calls: nothing that was written is
// lost, nothing is charged twice, and what is settled by the next process is what was spent.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SESSION } from "../../src/devnet/payments/wallets.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { PATIENT } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { assertBooked, callOf, chainsOfFile, stockClient } from "./session-fixture.ts";

const chains = await chainsOfFile();

const PRICE = 15n;
const KILLS = 3;
const SECRET = "a secret of 32 bytes, for tests only";

test(
  `a process is killed ${KILLS} times between answers and settlements: money settled is money ` +
    "spent, for as many calls as were answered",
  async (t) => {
    let heard: () => void = () => {};
    const upstream = await scriptedUpstream((asked, reply) => {
      reply.result(`"${asked.id}"`);
      heard();
    });
    const dataDir = mkdtempSync(join(tmpdir(), "svc-session-kill-"));
    t.after(async () => {
      await upstream.close();
      rmSync(dataDir, { recursive: true, force: true });
    });
    const start = (): Promise<ServiceProcess> =>
      startProcess(t, configOf(dataDir, upstream.url), { SVC_SECRET: SECRET });
    let service = await start();
    const { manager } = stockClient(chains, chains.payer);
    let answered = 0;
    const call = async (): Promise<boolean> => {
      try {
        const response = await manager.fetch(
          `${service.url}/rpc/session/load-balanced/ethereum`,
          callOf("eth_gasPrice", answered + 1),
        );
        assert.equal(response.status, 200, await response.clone().text());
        answered++;
        return true;
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        return false;
      }
    };
    for (let kill = 0; kill < KILLS; kill++) {
      for (let calls = 0; calls < 6; calls++) assert.ok(await call());
      // Killed while a call is under way, at another moment each time.
      const asked = new Promise<void>((resolve) => {
        heard = resolve;
      });
      const under = call();
      await asked;
      for (let turns = 0; turns < kill; turns++) await new Promise(setImmediate);
      service.signal("SIGKILL");
      await service.ended;
      await under;
      service = await start();
    }
    assert.ok(await call());
    const receipt = await manager.close();
    service.signal("SIGTERM");
    await service.ended;
    const store = await openStore({ url: "", dataDir });
    try {
      const { spentUnits, settledUnits } = await assertBooked(store);
      assert.deepEqual([receipt?.spent, settledUnits], [String(spentUnits), spentUnits]);
      const calls = spentUnits / PRICE;
      // A call that was charged in the moment of a kill may have lost its answer; the client pays
      // for the next one with the next voucher.
      assert.ok(
        calls >= BigInt(answered) && calls <= BigInt(answered + KILLS),
        `${calls} charged, ${answered} answered`,
      );
      assert.ok(BigInt(upstream.asked.length) >= calls);
    } finally {
      await store.close();
    }
  },
);

function configOf(dataDir: string, provider: string): string {
  const { chainId, rpcUrl, token } = chains.tempo;
  const profile = (id: string) => ({
    chains: { ethereum: { providers: [{ id, url: provider }] } },
  });
  const rail = {
    kind: "session",
    rpc_url: rpcUrl,
    chain_id: chainId,
    recipient: SESSION.address,
    token: token.address,
    wallet_key: SESSION.key,
    deposit_usd: "1",
    settle_usd: "0.00006",
  };
  return JSON.stringify({
    data_dir: dataDir,
    chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
    profiles: { premium: profile("paid"), public: profile("open") },
    deadlines: PATIENT,
    hosted: { enabled: true, payments: { rails: [rail], wait_ms: 60_000 } },
  });
}
