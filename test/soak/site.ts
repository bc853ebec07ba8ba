// What a soak runs on: a live chain, providers that reach its nodes through gates, and the service
// as a process of its own in front of them.
import { z } from "zod";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { PATIENT } from "../fakes/service.ts";
import { type Caller, openCaller } from "./caller.ts";
import type { LiveChain } from "./chain.ts";
import { type Gate, openGate } from "./gate.ts";

/** One provider of the service: a node and the gate in front of it. */
export interface Post {
  readonly id: string;
  readonly admission: Gate;
}

/** A service over gates. */
export interface Site {
  readonly service: ServiceProcess;
  readonly posts: readonly Post[];
  /** Opens a client's socket at `/ws` and this path. */
  open(path: string): Promise<Caller>;
  socketUrl(path: string): string;
  /** What the service says of the subscriptions of its first profile. */
  subscriptions(): Promise<z.infer<typeof Subscriptions>>;
  close(): Promise<void>;
}

const Subscriptions = z.object({
  failovers: z.record(z.string(), z.number()),
  blocks_filled: z.number(),
  streams: z.array(
    z.object({
      kind: z.string(),
      state: z.string(),
      subscribers: z.number(),
      block_height: z.number().nullable(),
    }),
  ),
});
const Metrics = z.object({
  profiles: z.tuple([z.object({ subscriptions: Subscriptions })]).rest(z.unknown()),
});

/** How a site is built. */
export interface SitePlan {
  /** Providers for each node: each has a socket and a health of its own. */
  readonly postsPerNode: number;
  /** Providers without HTTP. */
  readonly socketsOnly: boolean;
  /** Sets of all posts, by profile; what each adds to the usual set. */
  readonly profiles: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Opens the gates and starts the service. */
export async function startSite(chain: LiveChain, plan: SitePlan): Promise<Site> {
  const stops: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  };
  try {
    const posts: Post[] = [];
    for (let n = 0; n < plan.postsPerNode; n++) {
      for (const { id, url } of chain.devnet.providers) {
        const admission = await openGate(Number(new URL(url).port));
        stops.push(() => admission.close());
        posts.push({ id: `${id}-${n + 1}`, admission });
      }
    }
    const service = await startProcess(
      { after: (stop) => void stops.push(stop) },
      configOf(posts, plan),
    );
    const socketUrl = (path: string): string => `${service.url.replace("http", "ws")}/ws${path}`;
    const subscriptions = async () => {
      const response = await fetch(`${service.url}/api/metrics/local`);
      return Metrics.parse(await response.json()).profiles[0].subscriptions;
    };
    return {
      service,
      posts,
      subscriptions,
      socketUrl,
      open: (path) => openCaller(socketUrl(path)),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function configOf(posts: readonly Post[], { socketsOnly, profiles }: SitePlan): string {
  const providers = posts.map(({ id, admission: { port } }, n) => ({
    id,
    ...(socketsOnly ? {} : { url: `http://127.0.0.1:${port}` }),
    ws_url: `ws://127.0.0.1:${port}`,
    priority: n + 1,
  }));
  const sets = Object.entries(profiles).map(([slug, extra]) => [
    slug,
    { chains: { local: { ...extra, selection: SELECTION, providers } } },
  ]);
  return JSON.stringify({
    log_level: "info",
    deadlines: PATIENT,
    chains: { local: { chain_id: 31_337, block_time_ms: 100 } },
    profiles: Object.fromEntries(sets),
  });
}

/** Nodes here are never far apart, but their heights are not always known. */
const SELECTION = { max_lag_blocks: 20, archival_threshold: 1_000_000 };
