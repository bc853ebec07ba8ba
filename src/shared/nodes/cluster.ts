// A node of a cluster on one database: its id, the other nodes, and jobs that one node does for
// all. Knows neither keys nor credit.
import type { Logger } from "pino";
import type { PublicNode } from "../../core/cluster-health.ts";
import type { Runtime } from "../../runtime.ts";
import type { ChangeSignal } from "../changes/change-feed.ts";
import type { BookedLimitParts } from "../leases/booked-address-limits.ts";
import { RateShares } from "../leases/rate-shares.ts";
import { storedTokens } from "../leases/stored-tokens.ts";
import { type Store, urgently } from "../store/store.ts";
import { type NodeIdentity, publicNode, serviceNodeOf } from "./identity.ts";
import { createJobClaims, type JobClaims } from "./job-claims.ts";
import type { Listener } from "./listener.ts";
import { Membership, type MembershipSettings } from "./membership.ts";
import { NodeHints } from "./node-hints.ts";
import { type MayReplace, newProcessId } from "./node-rows.ts";
import { waitForNodeId } from "./start.ts";

/** Times and addresses of a cluster. */
export interface ClusterSettings extends MembershipSettings {
  readonly nodeTimeoutMs: number;
  /** The database server itself; holds a secret. */
  readonly listenUrl: string;
}

/** What a node joins with. */
export interface ClusterParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly node: NodeIdentity;
  /** What this process writes into the row of the node. */
  readonly processId: string;
  readonly settings: ClusterSettings;
  readonly log: Pick<Logger, "warn" | "info">;
  readonly onError: (error: unknown) => void;
}

/** Between two questions for tokens of rate limits. */
const TOKENS_MS = 50;

/**
 * Waits until the id of this node is free, and listens. Throws with a text for the operator where
 * the node cannot join.
 */
export async function openCluster(parts: ClusterParts): Promise<Cluster> {
  const { store, runtime, node, settings } = parts;
  const { openListener } = await import("./listener.ts");
  const listener = await openListener({ url: settings.listenUrl, store, runtime });
  try {
    const { nodeTimeoutMs } = settings;
    const replaces = await waitForNodeId({ ...parts, nodeId: node.id, nodeTimeoutMs });
    const membership = new Membership({ ...parts, store: urgently(store) });
    await membership.read();
    return new Cluster(parts, { listener, replaces, membership });
  } catch (error) {
    await listener.close();
    throw error;
  }
}

interface Joined {
  readonly listener: Listener;
  readonly replaces: MayReplace;
  readonly membership: Membership;
}

/** A node among others. */
export class Cluster {
  readonly store: Store;
  /** The name of this process among the others. */
  readonly node: NodeIdentity;
  /** The node that it belongs to, for operators, and as callers see it: its workers are one. */
  readonly identity: NodeIdentity;
  readonly shown: PublicNode;
  /** After this, what a silent process had is another's. */
  readonly nodeTimeoutMs: number;
  readonly processId: string;
  /** The row under its id that the start of this node may take over. */
  readonly replaces: MayReplace;
  readonly membership: Membership;
  readonly claims: JobClaims;
  /** Rate limits that the nodes share. */
  readonly rateShares: RateShares;
  /** Where the tokens of limits are asked for. */
  readonly tokens: BookedLimitParts;
  /** What the processes of all nodes tell each other, to save time. */
  readonly hints: NodeHints;
  /** Where the database tells of changes of other nodes. */
  readonly signal: ChangeSignal;
  readonly #joined: Joined;
  readonly #ends: (() => unknown)[];

  constructor(parts: ClusterParts, joined: Joined) {
    const { store, runtime, node, settings, onError } = parts;
    const { listener, membership } = joined;
    this.#joined = joined;
    this.signal = listener;
    this.store = store;
    this.node = node;
    this.identity = { ...node, id: serviceNodeOf(node.id) };
    this.shown = publicNode(node);
    this.nodeTimeoutMs = settings.nodeTimeoutMs;
    this.processId = parts.processId;
    this.replaces = joined.replaces;
    this.membership = membership;
    const { nodeTimeoutMs } = this;
    this.claims = createJobClaims({ store, runtime, nodeId: node.id, nodeTimeoutMs });
    this.tokens = {
      request: storedTokens(store, `${node.id} ${newProcessId(runtime)}`),
      members: () => membership.members,
    };
    const spacingMs = TOKENS_MS;
    this.rateShares = new RateShares({ ...this.tokens, runtime, spacingMs, onError });
    const self = `${node.id}:${newProcessId(runtime)}`.replace(/\s/g, "-");
    this.hints = new NodeHints({ store, runtime, signal: listener, self, onError });
    this.#ends = [() => this.rateShares.close(), () => this.hints.close()];
  }

  async close(): Promise<void> {
    this.membership.close();
    await this.#joined.listener.close();
    for (const end of this.#ends) await end();
  }
}
