// Sends the official exchanges through a real service in front of scripted providers, in every way
// in which callers send calls, and counts which answers came back as they were given.
import { WebSocket } from "ws";
import { configText, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type Script, type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";
import { answering, CHAIN_ID, type Exchange, underId } from "./exchanges.ts";

/** The ways in which each exchange is sent. */
export const WAYS = ["http", "batch", "socket", "again", "failover"] as const;

/** One of the ways. */
export type Way = (typeof WAYS)[number];

/** An answer that is not the one that was given. */
export interface Difference {
  readonly way: Way;
  readonly exchange: Exchange;
  readonly received: string;
}

/** What became of all exchanges. */
export interface ExchangeResult {
  readonly differences: readonly Difference[];
  /** The second time, files of exchanges that were answered from the cache. */
  readonly cached: ReadonlySet<string>;
  /** Files of exchanges for which a provider failed before another one answered. */
  readonly failedOver: ReadonlySet<string>;
}

const PATH = "/rpc/priority/devnet";
const ITEMS = 100;

/** Runs every exchange in every way. */
export async function runExchanges(exchanges: readonly Exchange[]): Promise<ExchangeResult> {
  const script = answering(exchanges);
  const differences = await withService([script], (service) => plainWays(service, exchanges));
  const cached = new Set<string>();
  await withService([script, script], async (service) => {
    for (const exchange of exchanges) await send(service, exchange);
    await until("the finalized block", async () => {
      const [first] = exchanges.filter(({ method }) => method === "eth_getBlockByNumber");
      return (
        first === undefined || (await send(service, first)).headers.get("x-svc-cache") === "hit"
      );
    });
    for (const exchange of exchanges) await send(service, exchange);
    for (const exchange of exchanges) {
      const { text, headers } = await send(service, exchange);
      if (headers.get("x-svc-cache") === "hit") cached.add(exchange.file);
      if (text !== exchange.answer) differences.push({ way: "again", exchange, received: text });
    }
  });
  const failedOver = new Set<string>();
  await withService([refusing, script], async (service, [first]) => {
    for (const exchange of exchanges) {
      const before = first?.asked.length ?? 0;
      const { text } = await send(service, exchange);
      if ((first?.asked.length ?? 0) > before) failedOver.add(exchange.file);
      if (text !== exchange.answer) differences.push({ way: "failover", exchange, received: text });
    }
  });
  return { differences, cached, failedOver };
}

/**
 * What says nothing of the provider itself, and certainly did nothing: the next one is asked, and
 * this one again next time.
 */
const refusing: Script = ({ method, params }, reply) => {
  if (method === "eth_chainId") return reply.result(`"0x${CHAIN_ID.toString(16)}"`);
  if (method === "eth_blockNumber") return reply.result('"0x36"');
  if (JSON.stringify(params) === '["finalized",false]') return reply.result("null");
  reply.body("Request Entity Too Large", 413);
};

async function plainWays(service: Service, exchanges: readonly Exchange[]): Promise<Difference[]> {
  const differences: Difference[] = [];
  const compare = (way: Way, exchange: Exchange, received: string, wanted: string): void => {
    if (received !== wanted) differences.push({ way, exchange, received });
  };
  for (const exchange of exchanges)
    compare("http", exchange, (await send(service, exchange)).text, exchange.answer);
  for (let from = 0; from < exchanges.length; from += ITEMS) {
    const items = exchanges.slice(from, from + ITEMS);
    const requests = items.map(({ request }, n) => underId(request, n));
    const { text } = await service.post(PATH, `[${requests.join(",")}]`);
    let at = 1;
    for (const [n, exchange] of items.entries()) {
      const wanted = underId(exchange.answer, n);
      compare("batch", exchange, text.slice(at, at + wanted.length), wanted);
      at += wanted.length + 1;
    }
  }
  const received = await overSocket(service, exchanges);
  for (const [n, exchange] of exchanges.entries())
    compare("socket", exchange, received.get(n) ?? "", underId(exchange.answer, n));
  return differences;
}

function send(service: Service, { request }: Exchange): ReturnType<Service["post"]> {
  return service.post(PATH, request);
}

/** The answers by id. */
async function overSocket(
  service: Service,
  exchanges: readonly Exchange[],
): Promise<ReadonlyMap<number, string>> {
  const answers = new Map<number, string>();
  const socket = new WebSocket(`ws://127.0.0.1:${service.port}/ws${PATH}`);
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("close", () => resolve());
    socket.on("open", () => {
      for (const [n, { request }] of exchanges.entries()) socket.send(underId(request, n));
    });
    socket.on("message", (data: Buffer) => {
      const text = data.toString();
      answers.set(Number(/"id":(\d+)/.exec(text)?.[1]), text);
      if (answers.size === exchanges.length) socket.close();
    });
  });
  return answers;
}

/**
 * A service with the settings that it has by default, except that tags go to the provider as they
 * are written: the exchanges say what a node answers to those.
 */
async function withService<T>(
  scripts: readonly Script[],
  run: (service: Service, upstreams: readonly ScriptedUpstream[]) => Promise<T>,
): Promise<T> {
  const upstreams = await Promise.all(scripts.map((script) => scriptedUpstream(script)));
  for (const upstream of upstreams) upstream.probesSay(null);
  const providers = upstreams.map(({ url }, n) => ({
    id: "ab".charAt(n),
    url,
    archival: true,
    priority: n + 1,
  }));
  const service = await startService(
    configText([], {
      chains: { devnet: { chain_id: CHAIN_ID, block_time_ms: 12_000 } },
      profiles: { team: { chains: { devnet: { providers } } } },
      cache: {},
      coalesce: "on",
      hedge: {},
    }),
  );
  try {
    return await run(service, upstreams);
  } finally {
    await Promise.all([service.close(), ...upstreams.map((upstream) => upstream.close())]);
  }
}
