// How a node comes to its id at a start: it waits until a row of this id that seems to live has
// proved to be left behind, and refuses to start beside a process that lives.
import type { Logger } from "pino";
import { pause } from "../../runtime.ts";
import type { NodeTimeout } from "./job-claims.ts";
import { heartbeatOf, type MayReplace } from "./node-rows.ts";

/** What a start waits with. */
export interface StartParts extends NodeTimeout {
  /** What this process writes into its row; a row that has it is left behind. */
  readonly processId: string;
  readonly log: Pick<Logger, "info">;
}

/** Looks at a row that seems to live, within the node timeout. */
const LOOKS = 20;

/**
 * Waits until no process lives under an id. Returns what the start may replace; throws with a text
 * for the operator when the heartbeat of another process advances.
 */
export async function waitForNodeId({
  store,
  runtime,
  nodeId: id,
  nodeTimeoutMs,
  processId,
  log,
}: StartParts): Promise<MayReplace> {
  const first = await heartbeatOf(store, id, processId);
  if (first === null) return null;
  const waiting = "a node of this id has not said that it left: waiting whether it lives";
  log.info({ node: id }, waiting);
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
