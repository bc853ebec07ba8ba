// A large hosted service behind tests of the console: fifty providers on twenty chains, one of them
// with WebSockets and subscribers, and an account of ten thousand keys. Names, methods, errors and
// reasons are markup, run from right to left, hold control characters, or are as long as they may
// be. Its clock can be moved.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { buildConsole, isConsoleBuilt } from "../../bin/build-console.ts";
import { realRuntime } from "../../src/runtime.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { type ManyKeys, writeManyKeys } from "../fakes/many-keys.ts";
import { PLAIN_ROUTING } from "../fakes/plain-routing.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";
import { type SocketNode, startNodes } from "../fakes/socket-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { HOSTILE } from "./console-service.ts";

/** The operator's token of the service. */
export const OPERATOR_TOKEN = "operator-of-the-large-service-0123456789";

/** Reads from right to left, and turns what follows around where a page lets it. */
const BACKWARDS = "\u202e\u2067 שלום gnikcatta";
const LONG = "W".repeat(60);
/** Bells, escapes of terminals, line ends of several kinds, and what has no width. */
const CONTROLS = "\u0007\u001b[31m\u0085\u2028\u200b\ufeff";
const NAMES = [HOSTILE, BACKWARDS, LONG];
const CHAINS = 20;
const PROVIDERS = 50;
const KEYS = 10_000;
/** What a caller sends along, and no page may show: headers, and parameters. */
export const UNSHOWN = "never-on-a-page";
/** As long as the id of a provider may be. */
export const LONG_ID = `socket-${"w".repeat(57)}`;
/** A Custom profile of the account, with a provider that answers with hostile errors. */
export const CUSTOM = "mine";

/** A large service. */
export interface LargeService {
  readonly service: Service;
  readonly account: { readonly id: string; readonly token: string; readonly key: string };
  /** Another account, with ten thousand keys. */
  readonly manyKeys: ManyKeys;
  /** Its paths name a chain and how calls end: `works`, `fails`, `own`. */
  readonly upstreamUrl: string;
  manage: ReturnType<typeof manageAt>;
  /** Moves the clock of sessions on. */
  later(ms: number): void;
  /** A call to a chain, by its number. */
  call(chain: number, method?: string): Promise<number>;
  /** A call to the Custom profile, whose provider answers with an error. */
  callCustom(method: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts it, with calls behind it, some of which failed. */
export async function startLargeService(): Promise<LargeService> {
  if (!isConsoleBuilt()) await buildConsole();
  const upstream = await hostileUpstream();
  const { nodes } = await startNodes(["both"]);
  const [node] = nodes;
  assert.ok(node !== undefined);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-large-"));
  const manyKeys = await writeManyKeys(dataDir, KEYS);
  let skippedMs = 0;
  const runtime = { ...realRuntime, wallMs: () => realRuntime.wallMs() + skippedMs };
  const service = await startService(configText(upstream.url, node, dataDir), runtime);
  await service.probed();
  const manage = manageAt(service.url);
  const account = await makeAccount(manage);
  const call = async (chain: number, method = "eth_gasPrice"): Promise<number> => {
    const body = { jsonrpc: "2.0", id: 1, method, params: [HOSTILE, UNSHOWN] };
    const path = `/rpc/k/${account.key}/load-balanced/${chain}`;
    return (await service.post(path, body, { "user-agent": `${UNSHOWN} ${HOSTILE}` })).status;
  };
  for (let chain = 1; chain <= CHAINS; chain++) assert.equal(await call(chain), 200);
  for (const method of [HOSTILE, `eth_${LONG}`, `eth_${BACKWARDS}`, `eth_${CONTROLS}`])
    await call(1, method);
  await cordonHostilely(manage);
  await writeCustomProfile(manage, account, `${upstream.url}/1/own`);
  const sockets = await subscribeHostilely(service.port, account.key);
  return {
    ...{ service, account, manyKeys, manage, call, upstreamUrl: upstream.url },
    async callCustom(method) {
      const body = { jsonrpc: "2.0", id: 1, method, params: [UNSHOWN] };
      await service.post(`/rpc/profile/${CUSTOM}/chain-1?key=${account.key}`, body);
    },
    later: (ms) => {
      skippedMs += ms;
    },
    async close() {
      for (const socket of sockets) socket.terminate();
      await service.close();
      await Promise.all([upstream.close(), node.ws.close(), node.http.close()]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

type Manage = LargeService["manage"];

async function makeAccount(manage: Manage): Promise<LargeService["account"]> {
  const made = (await manage("", "POST", "/api/v1/keys", { name: HOSTILE })).json;
  const token = made.management_token;
  for (const name of NAMES)
    assert.equal((await manage(token, "POST", "/api/v1/keys", { name })).status, 201);
  return { id: made.account_id, token, key: made.key };
}

/** What an operator wrote is shown in the table of providers, and among the actions. */
async function cordonHostilely(manage: Manage): Promise<void> {
  const ref = { profile: "premium", chain: "chain-3", provider: "p3-0" };
  const body = { ...ref, reason: `${HOSTILE} ${BACKWARDS} ${LONG}` };
  const { status } = await manage(OPERATOR_TOKEN, "POST", "/api/v1/operator/cordons", body);
  assert.equal(status, 200);
}

async function writeCustomProfile(
  manage: Manage,
  { id, token }: LargeService["account"],
  url: string,
): Promise<void> {
  const access = `/api/v1/operator/accounts/${id}/custom-access`;
  assert.equal((await manage(OPERATOR_TOKEN, "POST", access, { days: 2 })).status, 200);
  const providers = [{ name: "own", url }];
  const document = { name: HOSTILE, chains: { "chain-1": { providers } } };
  const written = await manage(token, "PUT", `/api/v1/profiles/${CUSTOM}`, document);
  assert.equal(written.status, 200, written.text);
}

/** Subscribers with headers that no page may show; their own refusals are of no interest. */
async function subscribeHostilely(port: number, key: string): Promise<readonly WebSocket[]> {
  const headers = { "user-agent": `${UNSHOWN} ${HOSTILE}`, origin: `http://${UNSHOWN}.example` };
  const open = (params: readonly unknown[]) =>
    new Promise<WebSocket>((opened, failed) => {
      const url = `ws://127.0.0.1:${port}/ws/rpc/k/${key}/chain-1`;
      const socket = new WebSocket(url, { headers });
      socket.once("error", failed);
      socket.once("message", () => opened(socket));
      const body = { jsonrpc: "2.0", id: HOSTILE, method: "eth_subscribe", params };
      socket.once("open", () => socket.send(JSON.stringify(body)));
    });
  const filter = { topics: [`0x${"b".repeat(64)}`] };
  return Promise.all([open(["newHeads"]), open(["logs", filter]), open([HOSTILE, UNSHOWN])]);
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
    // What a provider of a user must answer before a profile is saved.
    if (kind === "own" && method === "eth_call") return reply.result('"0x"');
    if (kind !== "works")
      return reply.error(
        JSON.stringify({ code: -32055, message: `${HOSTILE} ${BACKWARDS} ${LONG} ${CONTROLS}` }),
        500,
      );
    reply.result(JSON.stringify(`${HOSTILE} ${BACKWARDS}`));
  });
  return upstream;
}

function configText(url: string, node: SocketNode, dataDir: string): string {
  const numbers = Array.from({ length: CHAINS }, (_, at) => at + 1);
  const providersOf = (chain: number) =>
    Array.from({ length: Math.ceil((PROVIDERS - chain + 1) / CHAINS) }, (_, at) => ({
      id: `p${chain}-${at}`,
      name: NAMES[(chain + at) % NAMES.length],
      url: `${url}/${chain}/${at === 0 ? "fails" : "works"}`,
    }));
  const socket = { id: LONG_ID, name: BACKWARDS, url: node.http.url, ws_url: node.ws.url };
  const chains = Object.fromEntries(
    numbers.map((chain) => {
      const more = chain === 1 ? [socket] : [];
      return [`chain-${chain}`, { providers: [...providersOf(chain), ...more] }];
    }),
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
      max_keys: 20_000,
      flush_interval_ms: 100,
      allow_private_providers: true,
    },
    deadlines: PATIENT,
    ...PLAIN_ROUTING,
  });
}
