// Whether calls hang at a provider that may still answer probes and other calls: which of its last
// attempts another provider overtook, or the service gave up. Where it hangs too often it is asked
// after the others, and comes back by trials, one at a time. Knows no clock and no circuit.
import { STALE_MS } from "./latency.ts";

/** The last attempts at one provider on one transport; changed in place. */
export class StallRecord {
  /** The last attempts by turns: 1 = it was overtaken or given up. */
  readonly ring = new Uint8Array(ATTEMPTS);
  /** The next place in the ring. */
  at = 0;
  /** How many attempts in the ring were overtaken or given up. */
  hung = 0;
  /** When the last of them was overtaken or given up (ms). */
  hungAtMs = Number.NEGATIVE_INFINITY;
  /** The attempt that is the trial; null = no trial is under way. */
  trial: object | null = null;
}

/** So many attempts are looked at. */
const ATTEMPTS = 50;
/** More of them than this, and the provider is asked after the others. */
const MOST_HUNG = ATTEMPTS / 10;
/** No trial before this time after the last attempt that hung. */
const TRIAL_AFTER_MS = 10_000;

/** An attempt ended by itself, well or not. */
export function noteEnded(record: StallRecord): void {
  // Almost always: then the ring holds nothing.
  if (record.hung > 0) note(record, 0);
}

/** An attempt was overtaken, or given up; not by its caller. */
export function noteHung(record: StallRecord, nowMs: number): void {
  if (isStale(record, nowMs)) {
    record.ring.fill(0);
    record.hung = 0;
  }
  note(record, 1);
  record.hungAtMs = nowMs;
}

/**
 * Whether calls hang at the provider: it is asked after those where they do not. Changes nothing of
 * its circuit.
 */
export function isStalled(record: StallRecord, nowMs: number): boolean {
  return record.hung > MOST_HUNG && !isStale(record, nowMs);
}

/** Whether the next attempt at a stalled provider is its trial, so that it stands in its place. */
export function isTrialDue(record: StallRecord, nowMs: number): boolean {
  if (record.trial !== null || !isStalled(record, nowMs)) return false;
  const ageMs = nowMs - record.hungAtMs;
  return ageMs < 0 || ageMs >= TRIAL_AFTER_MS;
}

/** An attempt begins: it is the trial, if one is due. */
export function beginTrial(record: StallRecord, attempt: object, nowMs: number): void {
  if (record.hung > MOST_HUNG && isTrialDue(record, nowMs)) record.trial = attempt;
}

/** An attempt is over: if it was the trial, another may begin. */
export function endTrial(record: StallRecord, attempt: object): void {
  if (record.trial === attempt) record.trial = null;
}

function note(record: StallRecord, hung: 0 | 1): void {
  const { ring, at } = record;
  record.hung += hung - (ring[at] ?? 0);
  ring[at] = hung;
  record.at = (at + 1) % ATTEMPTS;
}

function isStale({ hungAtMs }: StallRecord, nowMs: number): boolean {
  return nowMs - hungAtMs >= STALE_MS;
}
