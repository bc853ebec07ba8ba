// Queries one provider for the logs of one block, for a check. A block that the provider does not
// know yet is queried again; failures do not count against the provider.
import type { Channel, Verdict } from "../../core/provider/attempt.ts";
import type { ErrorCategory } from "../../core/provider-errors/category.ts";
import { classify } from "../../core/provider-errors/classify.ts";
import { methodOf } from "../../core/rpc/method.ts";
import type { Block, Log } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { Tracker } from "../health/tracker.ts";
import { rpcCall } from "../rpc-call.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { Upstream } from "../transport.ts";
import { readLogs } from "./backfill.ts";

/** Dependencies of queries. */
export interface BlockLogsQueryParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly ws: Pick<Upstream, "send">;
  /** Null = queries use sockets only. */
  readonly http: Pick<Upstream, "send"> | null;
}

/** The logs to query and the provider. */
export interface BlockLogsQuery {
  readonly tracker: Tracker;
  readonly channel: Channel;
  readonly block: Block;
  /** The JSON array of `eth_getLogs`. */
  readonly params: string;
  /** Takes one call from the budget. False = no call may be made now. */
  readonly spend: () => boolean;
}

/** Waits before retries for a block that the provider does not know yet. */
const AGAIN_MS = [100, 300, 900] as const;
const TIMEOUT_MS = 2_000;
const METHOD = methodOf("eth_getLogs");

/** Queries the logs; null = the provider did not answer. Never rejects. */
export async function queryBlockLogs(
  parts: BlockLogsQueryParts,
  query: BlockLogsQuery,
): Promise<readonly Log[] | null> {
  for (const waitMs of [0, ...AGAIN_MS]) {
    if (waitMs > 0)
      await new Promise<void>((resolve) => void parts.timerWheel.set(waitMs, resolve));
    if (!query.spend()) return null;
    const said = await queryOnce(parts, query);
    if (said === "failed") return null;
    if (said !== "unknown block") return said;
  }
  return null;
}

function queryOnce(
  parts: BlockLogsQueryParts,
  { tracker, channel, block, params }: BlockLogsQuery,
): Promise<readonly Log[] | "unknown block" | "failed"> {
  const { runtime, timerWheel } = parts;
  const { provider, transport } = channel;
  const upstream = parts[transport];
  if (upstream === null || !tracker.admit(provider, transport)) return Promise.resolve("failed");
  const startedAtMs = runtime.now();
  const record = (verdict: Verdict | null): void =>
    tracker.record(METHOD, {
      provider,
      transport,
      latencyMs: runtime.now() - startedAtMs,
      verdict,
      code: null,
    });
  return new Promise((resolve) => {
    rpcCall(
      timerWheel,
      { upstream, provider, method: METHOD.name, params, timeoutMs: TIMEOUT_MS },
      {
        result(raw) {
          record(null);
          // Copied: the buffer of an answer is reused, and logs are kept.
          resolve(
            raw.toString("latin1", 0, NULL.length) === NULL
              ? "unknown block"
              : (readLogs(Buffer.from(raw), block) ?? "failed"),
          );
        },
        failed(failure) {
          const verdict = classify(failure, METHOD, {
            methodName: METHOD.name,
            rules: provider.errorRules,
            wallMs: runtime.wallMs(),
          });
          record(harmless(verdict));
          resolve(UNKNOWN_BLOCK.has(verdict.category) ? "unknown block" : "failed");
        },
      },
    );
  });
}

const NULL = "null";
/** Error categories of a node that does not know the block yet. Any other error would repeat. */
const UNKNOWN_BLOCK: ReadonlySet<string> = new Set<ErrorCategory>([
  "block_missing",
  "block_ahead",
  "lagging",
]);

/**
 * The verdict of a failed check: failures do not count, but limits and refusals are remembered as
 * from any call.
 */
function harmless(verdict: Verdict): Verdict {
  const { kind } = verdict.effect;
  return kind === "cooldown" || kind === "cordon"
    ? verdict
    : { ...verdict, effect: { kind: "ignored" } };
}
