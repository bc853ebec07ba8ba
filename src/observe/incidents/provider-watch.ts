// One provider of a profile on a chain as incidents see it: what all workers counted of it in the
// last steps, and what they know of it, made ready to be judged. Knows no clock.
import { ERROR_GROUPS, type ErrorGroup } from "../../core/provider-errors/category.ts";
import type { ProviderFailures } from "../history/failure-counts.ts";
import { type CountedRow, METHOD_CLASSES } from "../history/history-counts.ts";
import { ATTEMPT_ROW, addRow, circuitOf, lagOf, latencyOf } from "../history/history-row.ts";
import type { ProviderEvidence } from "../history/step-evidence.ts";
import {
  type AttemptCounts,
  type ClassLatency,
  FLAG_STEPS,
  type JudgedProvider,
  LEAST_ANSWERS,
  WINDOW_STEPS,
} from "./judge.ts";

const NO_EVIDENCE: Omit<ProviderEvidence, "provider"> = {
  exclusion: null,
  hasAnswered: true,
  isLastProbeGood: null,
  probeMs: null,
  isLimited: false,
};

const BROKEN: ReadonlySet<ErrorGroup> = new Set(["credentials", "timeout", "network", "server"]);

/** What was counted of a provider in one step, by all workers. */
export class ProviderStep {
  readonly all: number[] = emptyRow();
  /** By class of methods; undefined = nothing was counted. */
  readonly classes: (number[] | undefined)[] = [];
  readonly failures: ProviderFailures[] = [];
  evidence: Omit<ProviderEvidence, "provider"> = NO_EVIDENCE;
  maxLagBlocks = Number.POSITIVE_INFINITY;

  add({ class: of, numbers }: Pick<CountedRow, "class" | "numbers">): void {
    if (of === null) return addRow(ATTEMPT_ROW, this.all, numbers);
    const at = METHOD_CLASSES.indexOf(of);
    this.classes[at] ??= emptyRow();
    addRow(ATTEMPT_ROW, this.classes[at], numbers);
  }

  /** Takes what one of several workers knows. */
  know(evidence: ProviderEvidence, maxLagBlocks: number): void {
    const isLimited = evidence.isLimited || this.evidence.isLimited;
    this.evidence = { ...evidence, isLimited };
    this.maxLagBlocks = maxLagBlocks;
  }

  get counts(): AttemptCounts {
    return countsOf(this.all);
  }

  /** Whether it shows that something was wrong. */
  get isSuspect(): boolean {
    const { limited, broken } = this.counts;
    return limited + broken > 0 || this.isOpen || this.isUnanswered || this.isBehind;
  }

  get isOpen(): boolean {
    return circuitOf(this.all, ATTEMPT_ROW) === "open";
  }

  get isUnanswered(): boolean {
    return this.evidence.isLastProbeGood === false;
  }

  get isBehind(): boolean {
    return (lagOf(this.all, ATTEMPT_ROW) ?? 0) > this.maxLagBlocks;
  }
}

function emptyRow(): number[] {
  return Array.from({ length: ATTEMPT_ROW.width }, () => 0);
}

function countsOf(row: readonly number[]): AttemptCounts {
  const failed = (isCounted: (group: ErrorGroup) => boolean): number =>
    ERROR_GROUPS.reduce((sum, group, at) => sum + (isCounted(group) ? (row[1 + at] ?? 0) : 0), 0);
  return {
    attempts: (row[0] ?? 0) - failed((group) => group === "cut"),
    limited: failed((group) => group === "rate_limit"),
    broken: failed((group) => BROKEN.has(group)),
  };
}

/** A provider, as its last steps are summed up. `steps`: the latest last. */
export function judgedProvider(steps: readonly ProviderStep[]): JudgedProvider {
  const latest = steps.at(-1) ?? new ProviderStep();
  const window = steps.slice(-WINDOW_STEPS);
  const sum = emptyRow();
  for (const step of window) addRow(ATTEMPT_ROW, sum, step.all);
  const { isLastProbeGood, hasAnswered, exclusion, isLimited } = latest.evidence;
  const many = (list: readonly ProviderStep[], isSo: (step: ProviderStep) => boolean): number =>
    list.filter(isSo).length;
  return {
    window: countsOf(sum),
    latest: latest.counts,
    latencies: METHOD_CLASSES.map((_, at) => latencyOfClass(window, at)),
    probeMs: probeMsOf(steps),
    isLastProbeGood,
    hasAnswered,
    exclusion,
    circuit: circuitOf(latest.all, ATTEMPT_ROW),
    lagBlocks: lagOf(latest.all, ATTEMPT_ROW),
    maxLagBlocks: latest.maxLagBlocks,
    isLimited,
    steps: {
      open: many(window, ({ isOpen }) => isOpen),
      unanswered: many(window, ({ isUnanswered }) => isUnanswered),
      behind: many(window, ({ isBehind }) => isBehind),
      limited: many(steps.slice(-FLAG_STEPS), ({ evidence }) => evidence.isLimited),
    },
  };
}

/** The faster one of the last two probes: one that was slow says nothing yet. */
function probeMsOf(steps: readonly ProviderStep[]): number | null {
  const known = new Set(steps.flatMap(({ evidence }) => evidence.probeMs ?? []));
  return known.size < 2 ? null : Math.min(...[...known].slice(-2));
}

/** The share of the attempts of some steps that were answered; null = there were none. */
export function answeredShare(steps: readonly ProviderStep[]): number | null {
  const counts = steps.map((step) => step.counts);
  const attempts = counts.reduce((sum, each) => sum + each.attempts, 0);
  const failed = counts.reduce((sum, { limited, broken }) => sum + limited + broken, 0);
  return attempts === 0 ? null : Math.max(0, 1 - failed / attempts);
}

function latencyOfClass(window: readonly ProviderStep[], at: number): ClassLatency | null {
  const sum = emptyRow();
  for (const { classes } of window) {
    const row = classes[at];
    if (row !== undefined) addRow(ATTEMPT_ROW, sum, row);
  }
  const medianMs = latencyOf(sum, ATTEMPT_ROW, 0.5);
  const from = ATTEMPT_ROW.latencyAt;
  const answers = sum.slice(from, ATTEMPT_ROW.stateAt ?? from).reduce((all, n) => all + n, 0);
  return medianMs === null || answers < LEAST_ANSWERS ? null : { answers, medianMs };
}
