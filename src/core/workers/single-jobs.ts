// The port to jobs that one process of a service does for all: audits, sweeps, settling.

/** Decides which process does a job. */
export interface SingleJobs {
  /**
   * Runs a job if this process is the one that does it now; false = another does. A job may be
   * moved between two runs, never within one.
   */
  runIfOwner(name: string, run: () => Promise<void>): Promise<boolean>;
}
