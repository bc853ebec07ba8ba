// The port between the HTTP server and the pages that it serves.
import type { ServerResponse } from "node:http";
import type { Headers } from "../http/respond.ts";
import type { CompressionClient } from "../rpc/answers/compression.ts";

/** The parts of a GET request that a page may depend on. */
export interface PageRequest {
  readonly path: string;
  /** What follows the `?`. */
  readonly query: string;
  /** Base URL of this service as the caller uses it, without a trailing slash. */
  readonly baseUrl: string;
  /** `If-None-Match`. */
  readonly known: string | undefined;
  /** Decides whether the answer may be compressed. */
  readonly client: CompressionClient;
  /** True = authenticated as the operator: real provider ids may be shown. */
  readonly isOperator: boolean;
  /** True = what the instance and its providers do may be shown. */
  readonly mayReadStatus: boolean;
  /** True = a process on this machine sent the request on its own behalf. */
  readonly isLocal: boolean;
}

/** Answers a GET request. */
export type PageHandler = (
  response: ServerResponse,
  headers: Headers,
  request: PageRequest,
) => void;
