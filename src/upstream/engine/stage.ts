// The one shape of the parts of the engine, and how they are put together. A stage takes a job to
// an answer; a layer wraps a stage. Knows no layer by name.
import type { Abandoned } from "../../core/billing/charging.ts";
import type { Policy } from "../../core/routing/policy.ts";
import type { Answer } from "./answer.ts";
import type { Job } from "./job.ts";

/** Hears how a job ended: once, or never after it was cancelled. */
export interface JobListener {
  ended(answer: Answer): void;
}

/** A job that a stage has taken. */
export interface RunningJob {
  /** Ends it without an answer, and tells what may have been carried out. Again: nothing. */
  cancel(): Abandoned;
}

/** Takes a job to its answer. Its listener may be called before the stage returns. */
export type Stage = (job: Job, listener: JobListener) => RunningJob;

/** A stage around a stage. */
export type Layer = (next: Stage) => Stage;

/** A layer, and the jobs that pass it; all others go round it. */
export interface PolicyLayer {
  readonly appliesTo: (policy: Policy) => boolean;
  readonly layer: Layer;
}

/**
 * The layers around `innermost`, each around those before it. Each combination of layers is
 * composed once, when the first job needs it: a job pays only for layers that apply to it.
 */
export function stack(innermost: Stage, ...layers: readonly PolicyLayer[]): Stage {
  const composed: (Stage | undefined)[] = [];
  const compose = (combination: number): Stage =>
    layers.reduce(
      (next, { layer }, at) => ((combination & (1 << at)) === 0 ? next : layer(next)),
      innermost,
    );
  return (job, listener) => {
    let combination = 0;
    for (let at = 0; at < layers.length; at++) {
      if (layers[at]?.appliesTo(job.policy) === true) combination |= 1 << at;
    }
    const stage = composed[combination] ?? compose(combination);
    composed[combination] = stage;
    return stage(job, listener);
  };
}

/** What a cancel tells of a job that is over, or of which nothing was sent. */
export const NOTHING_SENT: Abandoned = { sent: false, countedAsTimeout: false };
