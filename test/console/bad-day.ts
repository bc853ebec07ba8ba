// A service on a bad day, for the tests of what the console says of it: three chains, and a fault
// at each of nine places. Its time runs several times as fast as that of the machine.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildConsole, isConsoleBuilt } from "../../bin/build-console.ts";
import { type FasterRuntime, fasterRuntime } from "../fakes/faster-runtime.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { PLAIN_ROUTING } from "../fakes/plain-routing.ts";
import { type Service, startService } from "../fakes/service.ts";
import { type Script, type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

/** The operator's token of the service. */
export const OPERATOR_TOKEN = "operator-of-the-bad-day-0123456789-0123456789";

/** Seconds of the service in a second of the machine. */
const FASTER = 2;
const SLOWER_MS = 600;
const CALLS_AT_ONCE = 16;
const PAUSE_MS = 100;
const MINE_MS = 1_000;
const LAG_BLOCKS = 40;

/** Providers by chain: each is called after what happens to it. */
const CHAINS = {
  ethereum: { id: 1, providers: ["good-1", "good-2", "bad-gateway", "limited"] },
  base: { id: 8453, providers: ["good-3", "good-4", "good-5", "slow", "behind"] },
  polygon: { id: 137, providers: ["good-6", "good-7", "killed", "stopped"] },
  gnosis: { id: 100, providers: ["good-8"] },
} as const;
type ChainName = keyof typeof CHAINS;
const NAMES = Object.keys(CHAINS) as readonly ChainName[];

/** What the operator would be told on the phone: place, state on the page, cause. */
export const FAULTS: readonly (readonly [place: string, state: string, cause: RegExp])[] = [
  ["bad-gateway on ethereum", "Failing", /HTTP 502/],
  ["limited on ethereum", "Limited", /HTTP 429/],
  ["slow on base", "Slow", /ms, its peers/],
  ["behind on base", "Lagging", /\d+ blocks behind/],
  ["killed on polygon", "Down", /no connection/],
  ["stopped on polygon", "Down", /not answered/],
  ["gnosis", "Stalled", /no new block/],
];

/** What every user of one method sees, of which no rule knows anything. */
export const UNKNOWN_WORDS = "shard 7 is being moved";
const UNKNOWN_ERROR = JSON.stringify({ code: -32_050, message: UNKNOWN_WORDS });
const FAILING_METHOD = "eth_getCode";

/** The service and its day. */
export interface BadDay {
  readonly service: Service;
  readonly runtime: FasterRuntime;
  readonly manage: ReturnType<typeof manageAt>;
  /** The key of the account that spends. */
  readonly spender: { readonly key: string; readonly name: string };
  /** All goes wrong. */
  begin(): Promise<void>;
  close(): Promise<void>;
}

const good: Script = (_, reply) => reply.result('"0x1"');
/** Answers so many of ten calls so, and the others well. */
function partly(ofTen: number, bad: Script): Script {
  let n = 0;
  return (asked, reply) => (n++ % 10 < ofTen ? bad : good)(asked, reply);
}
const silent: Script = () => {};
/** Answers everything late, also probes. */
function slowed(height: () => number): Script {
  const results = new Map([
    ["eth_chainId", () => `"0x${CHAINS.base.id.toString(16)}"`],
    ["eth_blockNumber", () => `"0x${height().toString(16)}"`],
    ["eth_getBlockByNumber", () => "null"],
  ]);
  return ({ method }, reply) =>
    void setTimeout(() => reply.result(results.get(method)?.() ?? '"0x1"'), SLOWER_MS / FASTER);
}

/** Starts it, with traffic and blocks on all chains; all is well. */
export async function startBadDay(): Promise<BadDay> {
  if (!isConsoleBuilt()) await buildConsole();
  const upstreams = new Map<string, ScriptedUpstream>();
  for (const name of NAMES)
    for (const provider of CHAINS[name].providers)
      upstreams.set(provider, await scriptedUpstream());
  const at = (name: string) => upstreams.get(name) ?? assert.fail(name);
  const mining = mine(at);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-day-"));
  const runtime = fasterRuntime(FASTER);
  const service = await startService(configText(at, dataDir), runtime);
  await service.probed();
  const manage = manageAt(service.url);
  const spender = (await manage("", "POST", "/api/v1/keys", { name: "the spender" })).json;
  const small = (await manage("", "POST", "/api/v1/agent/keys")).json;
  const others = (await manage("", "POST", "/api/v1/keys", { name: "another" })).json;
  for (const [n, { account_id: id }] of [spender, others].entries()) {
    const credit = { usd: "100", reference: `credit-${n}`, kind: "grant" };
    const path = `/api/v1/operator/accounts/${id}/credit`;
    assert.equal((await manage(OPERATOR_TOKEN, "POST", path, credit)).status, 200);
  }
  const calls = traffic(service, [spender.key, spender.key, others.key]);
  return {
    ...{ service, runtime, manage },
    spender: { key: spender.key, name: "the spender" },
    async begin() {
      at("bad-gateway").script(
        partly(7, (_, reply) => reply.body("<html>bad gateway</html>", 502)),
      );
      at("limited").script(partly(5, (_, reply) => reply.body("", 429, { "retry-after": "1" })));
      mining.leave("slow");
      at("slow").script(slowed(mining.height));
      mining.setBack("behind");
      mining.stop("gnosis");
      mining.leave("stopped");
      at("stopped").script(silent);
      await at("killed").close();
      at("good-8").script((asked, reply) =>
        asked.method === FAILING_METHOD ? reply.error(UNKNOWN_ERROR) : good(asked, reply),
      );
      for (let n = 0; n < 40; n++) await post(service, small.key, "ethereum");
      for (const { key } of [spender, others])
        for (let n = 0; n < 10; n++) await post(service, key, "gnosis", FAILING_METHOD);
    },
    async close() {
      await calls.stop();
      mining.end();
      await service.close();
      await Promise.all(Array.from(upstreams.values(), (each) => each.close()));
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Lets the heads of all providers rise, but of those that were told otherwise. */
function mine(at: (name: string) => ScriptedUpstream) {
  let height = 100;
  let isSetBack: string | null = null;
  const stopped = new Set<ChainName>();
  /** Providers that answer probes by their script. */
  const left = new Set<string>();
  const rise = (): void => {
    height++;
    for (const name of NAMES) {
      if (stopped.has(name)) continue;
      const { id, providers } = CHAINS[name];
      for (const provider of providers) {
        if (left.has(provider)) continue;
        const own = provider === isSetBack ? height - LAG_BLOCKS : height;
        at(provider).probesSay({ chainId: id, height: own });
      }
    }
  };
  rise();
  const timer = setInterval(rise, MINE_MS / FASTER);
  return {
    setBack(provider: string) {
      isSetBack = provider;
    },
    stop(chain: ChainName) {
      stopped.add(chain);
    },
    leave(provider: string) {
      left.add(provider);
      at(provider).probesSay(null);
    },
    height: () => height,
    end: () => clearInterval(timer),
  };
}

function post(
  service: Service,
  key: string,
  chain: ChainName | undefined,
  method = "eth_getBalance",
) {
  const params = ["0x00000000000000000000000000000000000000aa", "latest"];
  const body = { jsonrpc: "2.0", id: 1, method, params };
  return service.post(`/rpc/k/${key}/load-balanced/${chain}`, body);
}

/** Sends calls on all chains with these keys in turn, so many at once. */
function traffic(service: Service, keys: readonly string[]) {
  let isOver = false;
  let n = 0;
  const send = async (): Promise<void> => {
    while (!isOver) {
      n++;
      await post(service, keys[n % keys.length] ?? "", NAMES[n % NAMES.length]);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  };
  const sending = Array.from({ length: CALLS_AT_ONCE }, send);
  return {
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all(sending);
    },
  };
}

function configText(at: (name: string) => ScriptedUpstream, dataDir: string): string {
  const monitoring = { probe_interval_ms: 4_000 };
  const sets = Object.fromEntries(
    NAMES.map((name) => [
      name,
      { monitoring, providers: CHAINS[name].providers.map((id) => ({ id, url: at(id).url })) },
    ]),
  );
  return JSON.stringify({
    server: { port: 0, operator_token: OPERATOR_TOKEN },
    data_dir: dataDir,
    chains: Object.fromEntries(
      NAMES.map((name) => [name, { chain_id: CHAINS[name].id, block_time_ms: 1_000 }]),
    ),
    profiles: { premium: { chains: sets }, public: { chains: sets } },
    deadlines: { cheap_ms: 8_000, standard_ms: 8_000, default_ms: 8_000 },
    hosted: {
      enabled: true,
      keys_per_hour: 1_000,
      flush_interval_ms: 100,
      starting_grant_cu: 50,
      buckets: { managed: { per_second: 10_000, burst: 10_000 } },
      allow_private_providers: true,
    },
    ...PLAIN_ROUTING,
  });
}
