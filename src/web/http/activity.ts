// Counts the requests under way, so that a drain can wait for them.

/** Requests under way on all listeners. */
export interface Activity {
  active: number;
  lastMs: number;
  draining: boolean;
  /** True once the drain is over: every request still under way is cut off. */
  ended: boolean;
}
