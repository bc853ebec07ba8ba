// What processes of a service count for history, for tests of where it is kept.
import { ANSWERED } from "../../src/core/call-end.ts";
import type { Attempt } from "../../src/core/provider/attempt.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import {
  type ChainSample,
  type CountedStep,
  HistoryCounts,
} from "../../src/observe/history/history-counts.ts";
import {
  type HistoryQuery,
  type HistorySpan,
  historyRange,
  type SeriesReport,
} from "../../src/observe/history/history-report.ts";
import { fakeProvider } from "./providers.ts";
import type { SimulatedWorld } from "./runtime.ts";

const BALANCE = methodOf("eth_getBalance");

/** A process that counts, and passes on what it counted at each refresh. */
export interface CountingProcess {
  /** One call, answered by a provider; `ms` = how long it took. */
  call(provider?: number, ms?: number): void;
  refresh(samples?: readonly ChainSample[]): void;
}

/** A process whose steps go to `receive`. */
export function countingProcess(
  { wallMs }: Pick<SimulatedWorld, "wallMs">,
  receive: (step: CountedStep) => void,
): CountingProcess {
  const counts = new HistoryCounts();
  let beganMs = wallMs();
  return {
    call(provider = 0, ms = 25) {
      const chain = counts.chain("team", "test");
      const attempt: Attempt = {
        provider: fakeProvider(provider),
        transport: "http",
        latencyMs: ms,
        verdict: null,
        code: null,
      };
      chain.attempted(attempt, BALANCE);
      chain.ended(ANSWERED);
      chain.answered([{ attempt, failure: null }], ms);
    },
    refresh(samples = []) {
      receive({ atMs: beganMs, rows: counts.take(samples) });
      beganMs = wallMs();
    },
  };
}

/** Few enough that all series of a test fit into one report. */
const POINTS = 360;

/** A query of all providers of the chain that is counted. */
export function chainQuery(
  span: HistorySpan,
  wallMs: number,
  provider: string | null = null,
): HistoryQuery {
  const range = historyRange(span, POINTS, wallMs);
  return { ...range, chain: { profile: "team", chain: "test" }, provider, classes: true };
}

/** The calls of each series in all steps, by its provider and class; "" = of callers. */
export function callsIn(series: readonly SeriesReport[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    series.map(({ provider, class: of, rows }) => [
      [provider, of].filter((name) => name !== null).join(" "),
      rows.reduce((sum, row) => sum + (row?.[0] ?? 0), 0),
    ]),
  );
}
