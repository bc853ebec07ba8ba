// The port between the HTTP server and the pages that it serves.
import type { ServerResponse } from "node:http";
import type { Headers } from "../http/respond.ts";
import type { CompressionClient } from "../rpc/compression.ts";

/** The parts of a GET that a page may depend on. */
export interface PageRequest {
  readonly path: string;
  /** Base URL of this service as the caller knows it, without a slash at the end. */
  readonly baseUrl: string;
  /** `If-None-Match`. */
  readonly known: string | undefined;
  /** Decides whether the answer may be compressed. */
  readonly client: CompressionClient;
  /** True = it came with the operator token: real provider ids may be shown. */
  readonly isOperator: boolean;
  /** True = a process on this machine sent it on its own behalf. */
  readonly isLocal: boolean;
}

/** Answers a GET; registered by path. */
export type PageHandler = (
  response: ServerResponse,
  headers: Headers,
  request: PageRequest,
) => void;
