// How a node comes to its id at a start: it waits until a row of this id that seems to live has
// proved to be left behind, and refuses to start beside a process that lives.
import { pause, type Runtime } from "../../runtime.ts";
import type { Store } from "../store/store.ts";
import { heartbeatOf, type MayReplace } from "./node-rows.ts";

/** What a start waits with. */
export interface StartParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly nodeTimeoutMs: number;
  /** What this process writes into its row; a row that has it is left behind. */
  readonly processId: string;
  /** Told once if it has to wait. */
  readonly onWait: () => void;
}

/** Looks at a row that seems to live, within the node timeout. */
const LOOKS = 20;

/**
 * Waits until no process lives under an id. Returns what the start may replace; throws with a text
 * for the operator when the heartbeat of another process advances.
 */
export async function waitForNodeId(
  { store, runtime, nodeTimeoutMs, processId, onWait }: StartParts,
  id: string,
): Promise<MayReplace> {
  const first = await heartbeatOf(store, id, processId);
  if (first === null) return null;
  onWait();
  for (let look = 0; look < LOOKS; look++) {
    await pause(runtime, nodeTimeoutMs / LOOKS);
    const now = await heartbeatOf(store, id, processId);
    if (now === null) return null;
    if (now.epoch !== first.epoch || now.flushSeq !== first.flushSeq)
      throw new Error(
        `Another process lives as node ${id} in this database. Give each its own ` +
          "cluster.node_id, or leave it out: then one is made up at each start.",
      );
  }
  return first;
}
