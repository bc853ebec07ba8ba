// What `svc probe` knows of one endpoint.
import type { ProbeResult } from "../../upstream/probe/probe.ts";

/** The addresses of one endpoint. Secret. */
export interface Endpoint {
  readonly url: string | null;
  readonly wsUrl: string | null;
  /** The WebSocket address was made of the other one. */
  readonly isDerived: boolean;
}

/** What was found of an endpoint, compared with the others. */
export interface Probed {
  readonly endpoint: Endpoint;
  /** Without keys. */
  readonly address: string;
  readonly result: ProbeResult;
  /** Blocks behind the best endpoint of its chain; null = its head is not known. */
  readonly lag: number | null;
}
