// The services and settings that handlers of operations of every instance are built from, hosted or
// not.
import type { Runtime } from "../../runtime.ts";
import type { RecordAction } from "./action-log.ts";
import type { ConsoleSessions } from "./console-sessions.ts";

export interface InstanceParts {
  readonly runtime: Runtime;
  readonly sessions: ConsoleSessions;
  readonly summary: () => InstanceSummary;
  readonly recordAction: RecordAction;
}

/** What an instance tells those who sign in. */
export interface InstanceSummary {
  readonly version: string;
  readonly hosted: boolean;
  readonly devnet: boolean;
  /** Whether status pages are open to everyone. */
  readonly isPublic: boolean;
  /** This node by its alias; null = it serves alone. */
  readonly node: string | null;
}
