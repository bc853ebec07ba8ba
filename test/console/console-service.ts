// The service behind the tests of the console's pages: hosted, with payments over a local chain,
// two chains of calls, providers that answer, one that fails, one whose name is markup.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildConsole, isConsoleBuilt } from "../../bin/build-console.ts";
import { realRuntime } from "../../src/runtime.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { PAYMENTS, withRails } from "../fakes/paid-service.ts";
import { type PaymentChains, startPaymentChains } from "../fakes/payment-chains.ts";
import { PLAIN_ROUTING } from "../fakes/plain-routing.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

/** The operator's token of the service. */
export const OPERATOR_TOKEN = "operator-of-the-console-tests-0123456789";

/** A name that becomes an element, or runs, wherever a page takes it for markup. */
export const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'"&`;

/** A service with callers. */
export interface ConsoleService {
  readonly service: Service;
  readonly chains: PaymentChains;
  readonly good: ScriptedUpstream;
  readonly failing: ScriptedUpstream;
  readonly account: { readonly id: string; readonly token: string; readonly key: string };
  /** Calls with a key. */
  call(key: string, method?: string): Promise<number>;
  manage: ReturnType<typeof manageAt>;
  close(): Promise<void>;
}

/** Starts it, with an account that has called. */
export async function startConsoleService(): Promise<ConsoleService> {
  if (!isConsoleBuilt()) await buildConsole();
  const [chains, good, failing] = await Promise.all([
    startPaymentChains(),
    scriptedUpstream(),
    scriptedUpstream((_, reply) => reply.body("<html>bad gateway</html>", 502)),
  ]);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-console-"));
  const service = await startService(configText(good, failing, dataDir), realRuntime, (config) =>
    withRails(config, { ...PAYMENTS, waitMs: 60_000, rails: [chains.rails.evm] }),
  );
  await service.probed();
  const manage = manageAt(service.url);
  const made = (await manage("", "POST", "/api/v1/keys", { name: HOSTILE })).json;
  const account = { id: made.account_id, token: made.management_token, key: made.key };
  const call = async (key: string, method = "eth_gasPrice"): Promise<number> => {
    const body = { jsonrpc: "2.0", id: 1, method, params: [] };
    return (await service.post(`/rpc/k/${key}/load-balanced/ethereum`, body)).status;
  };
  assert.equal(await call(account.key), 200);
  return {
    ...{ service, chains, good, failing, account, call, manage },
    async close() {
      await service.close();
      await Promise.all([chains.close(), good.close(), failing.close()]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function configText(good: ScriptedUpstream, failing: ScriptedUpstream, dataDir: string): string {
  const providers = [
    { id: "good", name: "Good", url: good.url },
    { id: "failing", name: HOSTILE, url: failing.url },
  ];
  const profile = { chains: { ethereum: { providers } } };
  return JSON.stringify({
    server: { port: 0, operator_token: OPERATOR_TOKEN },
    data_dir: dataDir,
    log_level: "debug",
    chains: {
      ethereum: { chain_id: 1, name: "Ethereum", aliases: ["mainnet"], block_time_ms: 12_000 },
    },
    profiles: { premium: profile, public: profile },
    hosted: {
      enabled: true,
      keys_per_hour: 1_000,
      flush_interval_ms: 100,
      allow_private_providers: true,
    },
    deadlines: PATIENT,
    ...PLAIN_ROUTING,
  });
}
