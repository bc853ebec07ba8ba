// The work that is under way on connections, so that a drain can wait for it.

/** Requests under way on all listeners. */
export interface Activity {
  active: number;
  lastMs: number;
  draining: boolean;
  /** The drain is over: everything still under way is cut off. */
  ended: boolean;
}
