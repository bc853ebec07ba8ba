// The name of a node: in the database, in logs, and the short form that callers see. Knows no
// store.
import { createHash } from "node:crypto";
import type { PublicNode } from "../../core/cluster-health.ts";

/** The name of a node and where it runs. */
export interface NodeIdentity {
  /** `<node_id>`, or `<node_id>/<worker>` for a worker of it. */
  readonly id: string;
  readonly region: string;
}

const ALIAS_CHARACTERS = 6;

/** The node as callers see it; its workers share one alias. */
export function publicNode({ id, region }: NodeIdentity): PublicNode {
  const digest = createHash("sha256").update(serviceNodeOf(id)).digest("hex");
  return { id: `n-${digest.slice(0, ALIAS_CHARACTERS)}`, region };
}

/** The node that a row of the store belongs to: workers of one node are counted once. */
export function serviceNodeOf(id: string): string {
  const slash = id.indexOf("/");
  return slash < 0 ? id : id.slice(0, slash);
}
