// Asks every provider now and then who it is and how far it has come. Its own traffic: never counted among callers' requests.

import type { Failure } from "../core/attempt.ts";
import { classify } from "../core/classify.ts";
import { methodOf } from "../core/method.ts";
import type { Provider, Transport } from "../core/profile.ts";
import type { World } from "../world.ts";
import type { Probe, Tracker } from "./tracker.ts";
import type { Listener, Upstream } from "./transport.ts";
import type { Wheel } from "./wheel.ts";

/** Probes the providers of trackers until told otherwise. */
export interface Prober {
  /** Probes the providers of these trackers from now on, and no others. */
  watch(trackers: readonly Tracker[]): void;
  close(): void;
}

/** What probing works with. */
export interface ProberParts {
  readonly world: World;
  readonly wheel: Wheel;
  readonly upstreams: Readonly<Partial<Record<Transport, Upstream>>>;
}

const TIMEOUT_MS = 5_000;
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 30_000;
const REFUSED_RETRY_MS = 120_000;
/** Refusals of ourselves: asking again soon would only make it worse. */
const REFUSALS: readonly string[] = ["auth", "quota"];

/** A prober that watches nothing yet. */
export function createProber(parts: ProberParts): Prober {
  let cancels: (() => void)[] = [];

  function stop(): void {
    for (const cancel of cancels) cancel();
    cancels = [];
  }

  return {
    watch(trackers) {
      stop();
      for (const tracker of trackers) {
        const providers = tracker.set.providers.filter((it) => it.url !== null);
        providers.forEach((provider, n) => {
          cancels.push(probeForever(parts, tracker, { provider, transport: "http" }, (n / providers.length) * Math.min(2_000, tracker.set.probeIntervalMs)));
        });
      }
    },
    close: stop,
  };
}

interface Target {
  readonly provider: Provider;
  readonly transport: Transport;
}

/** Probes one provider after `firstMs` and then at its interval, backing off while it fails. Returns the way to stop. */
function probeForever(parts: ProberParts, tracker: Tracker, target: Target, firstMs: number): () => void {
  let failures = 0;
  let stopped = false;
  let cancelWait = parts.world.after(firstMs, round);
  let cancelAsk = (): void => {};

  function round(): void {
    cancelAsk = askOnce(parts, target, (result, latencyMs) => {
      if (stopped) return;
      tracker.recordProbe({ ...target, latencyMs, result });
      failures = result.kind === "ok" ? 0 : failures + 1;
      cancelWait = parts.world.after(pauseMs(result), round);
    });
  }

  function pauseMs(result: Probe["result"]): number {
    const { probeIntervalMs } = tracker.set;
    if (result.kind === "ok") return probeIntervalMs * (0.9 + 0.2 * parts.world.random());
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
function askOnce(parts: ProberParts, target: Target, done: (result: Probe["result"], latencyMs: number) => void): () => void {
  let cancel = ask(parts, target, "eth_chainId", (chainId) => {
    if (typeof chainId !== "number") return done(chainId, 0);
    const startedAtMs = parts.world.now();
    cancel = ask(parts, target, "eth_blockNumber", (height) => {
      done(typeof height === "number" ? { kind: "ok", chainId, height } : height, parts.world.now() - startedAtMs);
    });
  });
  return () => cancel();
}

/** One call without parameters whose result is a hex quantity. */
function ask(parts: ProberParts, target: Target, method: string, done: (result: number | Extract<Probe["result"], { kind: "failed" }>) => void): () => void {
  const { provider, transport } = target;
  const upstream = parts.upstreams[transport];
  if (upstream === undefined) return () => {};
  const fail = (failure: Failure): void => {
    alarm.clear();
    const verdict = classify(failure, methodOf(method), { methodName: method, rules: provider.errorRules, wallMs: parts.world.wallMs() });
    done({ kind: "failed", category: verdict.category });
  };
  const listener: Listener = {
    result(body, start, end) {
      const text = body.toString("latin1", start, Math.min(end, start + 20));
      const quantity = /^"0x[0-9a-fA-F]{1,13}"$/.test(text) ? Number(text.slice(1, -1)) : Number.NaN;
      if (Number.isNaN(quantity)) return fail({ ...NOTHING, kind: "body", message: "not a hex quantity" });
      alarm.clear();
      done(quantity);
    },
    stream(stream) {
      stream.cut();
      fail({ ...NOTHING, kind: "body", message: "not a hex quantity" });
    },
    broken() {},
    failed: fail,
  };
  const alarm = parts.wheel.set(TIMEOUT_MS, () => {
    dispatch.cancel();
    fail({ ...NOTHING, kind: "timeout", message: "no answer in time" });
  });
  const body = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":[]}`);
  const dispatch = upstream.send({ provider, body, wireId: "1", mayStream: false }, listener);
  return () => {
    alarm.clear();
    dispatch.cancel();
  };
}

const NOTHING = { httpStatus: 0, retryAfter: null, code: null, data: null } as const;
