// Asks every provider now and then who it is and how far it has come. Its own traffic: never counted among callers' requests.

import { type Channel, type Failure, plainFailure } from "../core/attempt.ts";
import { classify } from "../core/classify.ts";
import { methodOf } from "../core/method.ts";
import type { Provider, Transport } from "../core/profile.ts";
import type { World } from "../world.ts";
import { ask } from "./ask.ts";
import type { Probe, Tracker } from "./tracker.ts";
import type { Upstream } from "./transport.ts";
import type { Wheel } from "./wheel.ts";

/** Probes the providers of trackers until told otherwise. */
export interface Prober {
  /** Probes the providers of these trackers from now on, and no others; those of trackers it knows already go on undisturbed. */
  watch(trackers: readonly Tracker[]): void;
  close(): void;
}

/** What probing works with. */
export interface ProberParts {
  readonly world: World;
  readonly wheel: Wheel;
  readonly upstreams: Readonly<Partial<Record<Transport, Pick<Upstream, "send">>>>;
}

const TIMEOUT_MS = 5_000;
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 30_000;
const REFUSED_RETRY_MS = 120_000;
/** A provider that pushes its heads is asked only in one round of this many. */
const PUSHED_ROUNDS = 5;
/** Refusals of ourselves: asking again soon would only make it worse. */
const REFUSALS: readonly string[] = ["auth", "quota"];

/** A prober that watches nothing yet. */
export function createProber(parts: ProberParts): Prober {
  let watched: ReadonlyMap<Tracker, () => void> = new Map();

  function watch(trackers: readonly Tracker[]): void {
    const before = watched;
    watched = new Map(trackers.map((it) => [it, before.get(it) ?? probeAll(parts, it)]));
    for (const [tracker, stop] of before) if (!watched.has(tracker)) stop();
  }

  return { watch, close: () => watch([]) };
}

/** Probes every provider of a tracker, not all at once. Returns the way to stop. */
function probeAll(parts: ProberParts, tracker: Tracker): () => void {
  const targets = tracker.set.providers.flatMap(targetsOf);
  const cancels = targets.map((target, n) => probeForever(parts, tracker, target, (n / targets.length) * Math.min(2_000, tracker.set.probeIntervalMs)));
  return () => {
    for (const cancel of cancels) cancel();
  };
}

function targetsOf(provider: Provider): readonly Channel[] {
  const http: readonly Channel[] = provider.url === null ? [] : [{ provider, transport: "http" }];
  return provider.wsUrl === null ? http : [...http, { provider, transport: "ws" }];
}

/** Probes one provider after `firstMs` and then at its interval, backing off while it fails. Returns the way to stop. */
function probeForever(parts: ProberParts, tracker: Tracker, target: Channel, firstMs: number): () => void {
  let failures = 0;
  let passedOver = 0;
  let stopped = false;
  let cancelWait = parts.world.after(firstMs, round);
  let cancelAsk = (): void => {};

  function round(): void {
    if (tracker.pushesHeads(target.provider) && ++passedOver < PUSHED_ROUNDS) {
      cancelWait = parts.world.after(intervalMs(), round);
      return;
    }
    passedOver = 0;
    cancelAsk = askOnce(parts, target, (result, latencyMs) => {
      if (stopped) return;
      tracker.recordProbe({ ...target, latencyMs, result });
      failures = result.kind === "ok" ? 0 : failures + 1;
      cancelWait = parts.world.after(pauseMs(result), round);
    });
  }

  function intervalMs(): number {
    return tracker.set.probeIntervalMs * (0.9 + 0.2 * parts.world.random());
  }

  function pauseMs(result: Probe["result"]): number {
    if (result.kind === "ok") return intervalMs();
    if (REFUSALS.includes(result.category)) return REFUSED_RETRY_MS;
    return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 8));
  }

  return () => {
    stopped = true;
    cancelWait();
    cancelAsk();
  };
}

/** Asks for chain id and height; `done` hears the result and the latency of the second answer. Returns the way to stop. */
function askOnce(parts: ProberParts, target: Channel, done: (result: Probe["result"], latencyMs: number) => void): () => void {
  let cancel = askQuantity(parts, target, "eth_chainId", (chainId) => {
    if (typeof chainId !== "number") return done(chainId, 0);
    const startedAtMs = parts.world.now();
    cancel = askQuantity(parts, target, "eth_blockNumber", (height) => {
      done(typeof height === "number" ? { kind: "ok", chainId, height } : height, parts.world.now() - startedAtMs);
    });
  });
  return () => cancel();
}

/** One call without parameters whose result is a hex quantity. */
function askQuantity(
  parts: ProberParts,
  target: Channel,
  method: string,
  done: (result: number | Extract<Probe["result"], { kind: "failed" }>) => void,
): () => void {
  const { provider, transport } = target;
  const upstream = parts.upstreams[transport];
  if (upstream === undefined) return () => {};
  const failed = (failure: Failure): void => {
    const verdict = classify(failure, methodOf(method), { methodName: method, rules: provider.errorRules, wallMs: parts.world.wallMs() });
    done({ kind: "failed", category: verdict.category });
  };
  return ask(
    parts.wheel,
    { upstream, provider, method, params: "[]", timeoutMs: TIMEOUT_MS },
    {
      result(result) {
        const text = result.toString("latin1", 0, 20);
        if (/^"0x[0-9a-fA-F]{1,13}"$/.test(text)) done(Number(text.slice(1, -1)));
        else failed(plainFailure("body", "not a hex quantity"));
      },
      failed,
    },
  );
}
