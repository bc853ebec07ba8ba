// The operator changes of one worker of a service, over a store and a bus that workers share.
import { pino } from "pino";
import { OperatorChanges } from "../../src/app/operators/operator-changes.ts";
import type { Bus } from "../../src/core/workers/bus.ts";
import { type Changes, openChanges } from "../../src/shared/changes/changes.ts";
import type { Store } from "../../src/shared/store/store.ts";
import type { SimulatedWorld } from "./runtime.ts";

/** What the changes of a worker are opened with. */
export interface WorkerChangesParts {
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly bus: Bus;
  /** Null = the service is one node. */
  readonly node?: string | null;
  readonly onError: (error: unknown) => void;
}

/** Opens them; `changes.begin()` has what others write followed. */
export async function openWorkerChanges(
  parts: WorkerChangesParts,
): Promise<{ readonly changes: Changes; readonly operatorChanges: OperatorChanges }> {
  const { bus, node = null } = parts;
  const log = pino({ level: "silent" });
  const ofService = { signal: null, workers: 3, nodeTimeoutMs: 3_600_000, log };
  const changes = await openChanges({ ...parts, ...ofService });
  const process = `${node ?? "n1"}/${bus.self}`;
  return { changes, operatorChanges: new OperatorChanges({ ...parts, changes, process, node }) };
}
