// A large hosted service behind tests of the console: fifty providers on twenty chains, with names
// that are markup, run from right to left, or are as long as they may be. Its clock can be moved.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildConsole, isConsoleBuilt } from "../../bin/build-console.ts";
import { realRuntime } from "../../src/runtime.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { PLAIN_ROUTING } from "../fakes/plain-routing.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { HOSTILE } from "./console-service.ts";

/** The operator's token of the service. */
export const OPERATOR_TOKEN = "operator-of-the-large-service-0123456789";

/** Reads from right to left, and turns what follows around where a page lets it. */
const BACKWARDS = "\u202e\u2067 שלום gnikcatta";
const LONG = "W".repeat(60);
const NAMES = [HOSTILE, BACKWARDS, LONG];
const CHAINS = 20;
const PROVIDERS = 50;

/** A large service. */
export interface LargeService {
  readonly service: Service;
  readonly account: { readonly id: string; readonly token: string; readonly key: string };
  manage: ReturnType<typeof manageAt>;
  /** Moves the clock of sessions on. */
  later(ms: number): void;
  /** A call to a chain, by its number. */
  call(chain: number, method?: string): Promise<number>;
  close(): Promise<void>;
}

/** Starts it, with calls behind it, some of which failed. */
export async function startLargeService(): Promise<LargeService> {
  if (!isConsoleBuilt()) await buildConsole();
  const upstream = await hostileUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), "svc-large-"));
  let skippedMs = 0;
  const runtime = { ...realRuntime, wallMs: () => realRuntime.wallMs() + skippedMs };
  const service = await startService(configText(upstream.url, dataDir), runtime);
  await service.probed();
  const manage = manageAt(service.url);
  const made = (await manage("", "POST", "/api/v1/keys", { name: HOSTILE })).json;
  const account = { id: made.account_id, token: made.management_token, key: made.key };
  for (const name of NAMES)
    assert.equal((await manage(account.token, "POST", "/api/v1/keys", { name })).status, 201);
  const call = async (chain: number, method = "eth_gasPrice"): Promise<number> => {
    const body = { jsonrpc: "2.0", id: 1, method, params: [] };
    return (await service.post(`/rpc/k/${account.key}/load-balanced/${chain}`, body)).status;
  };
  for (let chain = 1; chain <= CHAINS; chain++) assert.equal(await call(chain), 200);
  for (const method of [HOSTILE, `eth_${LONG}`, `eth_${BACKWARDS}`]) await call(1, method);
  return {
    ...{ service, account, manage, call },
    later: (ms) => {
      skippedMs += ms;
    },
    async close() {
      await service.close();
      await upstream.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** One address for all providers: paths say which chain is asked, and whether it fails. */
async function hostileUpstream(): Promise<ScriptedUpstream> {
  const upstream = await scriptedUpstream();
  upstream.probesSay(null);
  upstream.script(({ method, path }, reply) => {
    const [, chain = "", kind] = path.split("/");
    if (method === "eth_chainId") return reply.result(`"0x${Number(chain).toString(16)}"`);
    if (method === "eth_blockNumber") return reply.result('"0x64"');
    if (method === "eth_getBlockByNumber") return reply.result("null");
    if (kind === "fails")
      return reply.error(
        JSON.stringify({ code: -32055, message: `${HOSTILE} ${BACKWARDS} ${LONG}` }),
        500,
      );
    reply.result(JSON.stringify(`${HOSTILE} ${BACKWARDS}`));
  });
  return upstream;
}

function configText(url: string, dataDir: string): string {
  const numbers = Array.from({ length: CHAINS }, (_, at) => at + 1);
  const providersOf = (chain: number) =>
    Array.from({ length: Math.ceil((PROVIDERS - chain + 1) / CHAINS) }, (_, at) => ({
      id: `p${chain}-${at}`,
      name: NAMES[(chain + at) % NAMES.length],
      url: `${url}/${chain}/${at === 0 ? "fails" : "works"}`,
    }));
  const chains = Object.fromEntries(
    numbers.map((chain) => [`chain-${chain}`, { providers: providersOf(chain) }]),
  );
  return JSON.stringify({
    server: { port: 0, operator_token: OPERATOR_TOKEN },
    data_dir: dataDir,
    log_level: "error",
    chains: Object.fromEntries(
      numbers.map((chain) => [
        `chain-${chain}`,
        { chain_id: chain, name: NAMES[chain % NAMES.length], block_time_ms: 12_000 },
      ]),
    ),
    profiles: { premium: { chains }, public: { chains } },
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
