// The operator's audit over HTTP and `svc audit` find the same: money that the books have and the
// payment chain has taken back. Real service, real local chain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { auditMoney } from "../../src/app/audit.ts";
import { realRuntime } from "../../src/runtime.ts";
import { OPERATOR_TOKEN, startPaidService } from "../fakes/paid-service.ts";
import { evmClient } from "../fakes/stock-clients.ts";

test(
  "credited money that a reorganisation took back is found by the operator's endpoint as by " +
    "the command; a chain that is gone is no clean report",
  async (t) => {
    const fixture = await startPaidService(({ rails }) => [{ ...rails.evm, local: false }]);
    t.after(() => fixture.close());
    const { service, chains } = fixture;
    const overHttp = async () => {
      const response = await fetch(`${service.url}/api/v1/operator/audit`, {
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      });
      const { ok, differences, unread_chains } = JSON.parse(await response.text());
      return { status: response.status, ok, differences, unread: unread_chains };
    };
    const last = async () => {
      const response = await fetch(`${service.url}/api/v1/operator/audit/last`, {
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      });
      const { state, books, chains } = JSON.parse(await response.text());
      return [state, books?.state, chains?.state, chains?.problems];
    };
    const byCommand = () =>
      auditMoney({
        config: service.config,
        runtime: realRuntime,
        localRails: [],
        sinceMs: null,
        onProgress: () => {},
      });

    const { key } = (await service.post("/api/v1/agent/keys", {})).json;
    const before = await chains.evm.rpc("evm_snapshot");
    const paid = await evmClient(chains)(`${service.url}/api/v1/agent/keys/${key}/fund`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"amount_usd":"0.5"}',
    });
    const { receipt } = JSON.parse(await paid.text());
    assert.equal(paid.status, 200);
    assert.deepEqual(await overHttp(), { status: 200, ok: true, differences: [], unread: [] });
    assert.deepEqual(await last(), ["balanced", "balanced", "balanced", []]);
    assert.equal((await byCommand()).clean, true);

    await chains.evm.rpc("evm_revert", before);
    for (let block = 0; block < 3; block++) await chains.evm.rpc("evm_mine");
    const found = { check: "chain", id: receipt.tx_hash, is_usd: "0.5", should_be_usd: "0" };
    assert.deepEqual(await overHttp(), {
      status: 200,
      ok: false,
      differences: [found],
      unread: [],
    });
    assert.deepEqual(await last(), [
      ...["unbalanced", "balanced", "unbalanced"],
      [
        `transaction ${receipt.tx_hash} on chain ${chains.evm.chainId}: moved 0 USD, recorded 0.5 USD`,
      ],
    ]);
    const command = await byCommand();
    assert.equal(command.clean, false);
    assert.ok(command.lines.some((line) => line.includes(receipt.tx_hash)));

    process.kill(chains.evm.pid, "SIGKILL");
    const blind = await overHttp();
    assert.deepEqual([blind.status, blind.ok, blind.differences], [200, false, []]);
    assert.deepEqual(
      blind.unread.map((it: { chain_id: number }) => it.chain_id),
      [chains.evm.chainId],
    );
    const [state, , ofChains, [problem]] = await last();
    assert.deepEqual([state, ofChains], ["balanced", "unread"]);
    assert.match(problem, /could not be read/);
    await assert.rejects(byCommand(), { name: "ChainFailure" });
  },
);
