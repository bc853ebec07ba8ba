// Bounds of the RPC surface.
import { fault } from "../../core/faults/rpc-fault.ts";
import type { SplitLimits } from "../../upstream/engine/ranges/range-run.ts";

export interface RpcLimits {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly batchConcurrency: number;
  /** Bytes of requests and gathered answers in memory, over all callers. */
  readonly maxInFlightBytes: number;
  /** The part of it that one caller may use: an account, or an address without a key. */
  readonly maxCallerBytes: number;
  readonly maxSocketRequests: number;
  readonly maxSocketBytes: number;
  readonly maxSocketSubscriptions: number;
  /** Distinct log filters per caller, with a key and without. */
  readonly maxLogFilters: number;
  readonly maxKeylessLogFilters: number;
  readonly maxSocketQueueBytes: number;
  readonly socketPingMs: number;
}

/** Bounds of calls over ranges of blocks. */
export interface LogBounds extends SplitLimits {
  /** Most parts of callers without a key, where others have keys. */
  readonly maxKeylessParts: number;
}

/** An answer without progress on either side for this long is cut off. */
export const STALL_MS = 30_000;

/** The refusal of a request that does not fit into the memory budget. */
export const NO_ROOM_FOR_REQUEST = fault(
  "unavailable",
  "too many request bytes are in flight, of all callers (limits.max_in_flight_bytes) or of " +
    "this one (limits.max_caller_bytes)",
);

/** The refusal of a body that is not JSON. */
export const NOT_JSON = fault("parse_error", "the body is not valid JSON");
