// The health of a cluster as one of its nodes knows it, for `GET /api/health` and metrics.

/** The nodes of the service, as this one knows them: `cluster` in `GET /api/health`. */
export interface ClusterHealth {
  readonly connected: number;
  readonly responding: number;
  readonly total: number;
  readonly regions: readonly string[];
  readonly status: "healthy" | "degraded" | "critical";
  /** For how long the database has not answered. */
  readonly silentMs: number;
  /** What an operator has to look at; empty = nothing. */
  readonly problems: readonly string[];
}

/** A node as callers see it. */
export interface PublicNode {
  /** A short alias: it tells nodes apart, and nothing of the machine. */
  readonly id: string;
  readonly region: string;
}
