// A real service with many chains and providers under real traffic, to look at the console with:
// one provider fails, one is slow, one has a name that is HTML. An account has many keys.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ManyKeys, writeManyKeys } from "../test/fakes/many-keys.ts";
import { type Service, startService } from "../test/fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../test/fakes/upstream.ts";

/** How large the service is, and how much it is asked. */
export interface ConsoleServiceSize {
  readonly chains: number;
  readonly providers: number;
  readonly callsPerSecond: number;
  readonly keys: number;
}

/** A running service under traffic. */
export interface ConsoleService {
  readonly service: Service;
  readonly manyKeys: ManyKeys;
  close(): Promise<void>;
}

/** The secret of the operator. */
export const OPERATOR_TOKEN = "operator-token-of-the-console-report";

const CHAINS = [
  ["ethereum", 1, "Ethereum"],
  ["base", 8453, "Base"],
  ["arbitrum", 42161, "Arbitrum One"],
  ["optimism", 10, "OP Mainnet"],
  ["polygon", 137, "Polygon PoS"],
  ["bnb", 56, "BNB Smart Chain"],
  ["gnosis", 100, "Gnosis"],
  ["avalanche", 43114, "Avalanche C-Chain"],
  ["linea", 59144, "Linea"],
  ["scroll", 534352, "Scroll"],
  ["zksync", 324, "ZKsync Era"],
  ["mantle", 5000, "Mantle"],
  ["blast", 81457, "Blast"],
  ["celo", 42220, "Celo"],
  ["moonbeam", 1284, "Moonbeam"],
  ["fantom", 250, "Fantom"],
  ["sepolia", 11155111, "Sepolia"],
  ["base-sepolia", 84532, "Base Sepolia"],
  ["holesky", 17000, "Holesky"],
  ["unichain", 130, "Unichain"],
] as const;
const VENDORS = ["northnode", "rpc-west", "archiva", "quickblock", "own-fleet"] as const;
const HTML_NAME = `<img src=x onerror="document.title='owned'">`;
const METHODS = ["eth_call", "eth_getBalance", "eth_gasPrice", "eth_getCode", "eth_estimateGas"];

/** Starts everything; the traffic goes on until it is closed. */
export async function startConsoleService(size: ConsoleServiceSize): Promise<ConsoleService> {
  const chains = CHAINS.slice(0, size.chains);
  const upstreams = await Promise.all(chains.map(() => scriptedUpstream()));
  for (const [at, upstream] of upstreams.entries()) behave(upstream, chains[at]?.[1] ?? 1);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-console-bench-"));
  const manyKeys = await writeManyKeys(dataDir, size.keys);
  const service = await startService(configOf(size, chains, upstreams, dataDir));
  const traffic = setInterval(
    () => void callOne(service, chains).catch(() => {}),
    1_000 / size.callsPerSecond,
  );
  return {
    ...{ service, manyKeys },
    async close() {
      clearInterval(traffic);
      await service.close();
      await Promise.all(upstreams.map((upstream) => upstream.close()));
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function configOf(
  { chains: count, providers: total }: ConsoleServiceSize,
  chains: readonly (readonly [string, number, string])[],
  upstreams: readonly ScriptedUpstream[],
  dataDir: string,
): string {
  const providersOf = (at: number) =>
    Array.from({ length: Math.ceil((total - at) / count) }, (_, nth) => {
      const vendor = VENDORS[nth % VENDORS.length] ?? "vendor";
      const name = at === 1 && nth === 1 ? HTML_NAME : vendor;
      const url = `${upstreams[at]?.url}/${vendor}`;
      return { id: `${vendor}-${chains[at]?.[0]}-${nth}`, name, url, limits: { rps: 500 } };
    });
  const blockTimes = { block_time_ms: 2_000 };
  return JSON.stringify({
    server: { port: 0, operator_token: OPERATOR_TOKEN },
    ...{ log_level: "error", data_dir: dataDir, hosted: { enabled: true, keyless: true } },
    chains: Object.fromEntries(
      chains.map(([slug, id, name]) => [slug, { chain_id: id, name, ...blockTimes }]),
    ),
    profiles: {
      public: {
        chains: Object.fromEntries(
          chains.map(([slug], at) => [slug, { providers: providersOf(at) }]),
        ),
      },
    },
  });
}

/** Every vendor has a speed of its own; one of the first chain's fails half of its calls. */
function behave(upstream: ScriptedUpstream, chainId: number): void {
  const startedAt = Date.now();
  const height = (): number => 21_000_000 + Math.floor((Date.now() - startedAt) / 2_000);
  upstream.probesSay(null);
  upstream.script(({ method, path, params }, reply) => {
    if (method === "eth_chainId") return reply.result(`"0x${chainId.toString(16)}"`);
    if (method === "eth_blockNumber") return reply.result(`"0x${height().toString(16)}"`);
    if (method === "eth_getBlockByNumber" && Array.isArray(params)) return reply.result("null");
    const vendor = VENDORS.findIndex((name) => path === `/${name}`);
    if (chainId === 1 && vendor === 1 && Math.random() < 0.5)
      return reply.error('{"code":-32000,"message":"upstream overloaded, try again"}', 503);
    const delayMs = 2 + vendor * 9 + Math.random() * 12;
    setTimeout(() => reply.result('"0x1"'), delayMs);
  });
}

async function callOne(
  service: Service,
  chains: readonly (readonly [string, number, string])[],
): Promise<void> {
  // Some chains are asked far more than others.
  const at = Math.floor(Math.random() ** 2.5 * chains.length);
  const method = METHODS[Math.floor(Math.random() * METHODS.length)] ?? "eth_gasPrice";
  const to = `0x${Math.floor(Math.random() * 1e12)
    .toString(16)
    .padStart(40, "0")}`;
  const params =
    method === "eth_gasPrice"
      ? []
      : method === "eth_call" || method === "eth_estimateGas"
        ? [{ to }, "latest"]
        : [to, "latest"];
  const body = { jsonrpc: "2.0", id: 1, method, params };
  await service.post(`/rpc/${chains[at]?.[0] ?? "ethereum"}`, body);
}
