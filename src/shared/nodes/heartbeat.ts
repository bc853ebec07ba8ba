// The heartbeat of a node that leases no credit: writes a sign of life once a second, finds dead
// nodes, and joins again after this node was taken for dead.
import type { Runtime } from "../../runtime.ts";
import type { Cluster } from "./cluster.ts";
import { DeadNodeWatch } from "./dead-nodes.ts";
import { beat, type Epoch, join, leave } from "./node-rows.ts";

/** What a heartbeat works with. */
export interface HeartbeatParts
  extends Pick<Cluster, "store" | "node" | "replaces" | "processId" | "nodeTimeoutMs"> {
  readonly runtime: Runtime;
  readonly everyMs: number;
  readonly onError: (error: unknown) => void;
}

/** Joins, and shows from now on that this node lives. The returned function leaves. */
export async function openHeartbeat(parts: HeartbeatParts): Promise<() => Promise<void>> {
  const { store, runtime, node, everyMs, onError } = parts;
  const deadNodes = new DeadNodeWatch({ ...parts, nodeId: node.id });
  const { replaces, processId } = parts;
  let epoch = await join(store, node, { wallMs: runtime.wallMs(), replaces, processId });
  if (epoch === null) throw new Error(`another process lives as node ${node.id}`);
  let beating: Promise<void> = Promise.resolve();
  let isClosed = false;
  let cancel = runtime.after(everyMs, again);

  function again(): void {
    beating = beatOnce()
      .catch(onError)
      .then(() => {
        if (!isClosed) cancel = runtime.after(everyMs, again);
      });
  }

  async function beatOnce(): Promise<void> {
    epoch = await continued(parts, epoch, processId);
    await deadNodes.check();
  }

  return async () => {
    isClosed = true;
    cancel();
    await beating;
    if (epoch !== null) await leave(store, epoch);
  };
}

/** The epoch that goes on, or a new one if it was over. */
async function continued(
  { store, runtime, node }: HeartbeatParts,
  epoch: Epoch | null,
  processId: string,
): Promise<Epoch> {
  const wallMs = runtime.wallMs();
  if (epoch !== null && (await beat(store, epoch, wallMs))) return epoch;
  const next = await join(store, node, { wallMs, replaces: null, processId });
  if (next === null) throw new Error(`another process has taken over as node ${node.id}`);
  return next;
}
