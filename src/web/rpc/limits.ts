// Bounds of the RPC surface.
import { fault } from "../../core/faults/rpc-fault.ts";

/** Bounds of the RPC surface. */
export interface RpcLimits {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly batchConcurrency: number;
  /** Requests and gathered answers held at one time, by all callers together. */
  readonly maxInFlightBytes: number;
  /** The part of it that one caller may take: an account, or an address without a key. */
  readonly maxCallerBytes: number;
  readonly maxSocketRequests: number;
  readonly maxSocketBytes: number;
  readonly maxSocketSubscriptions: number;
  /** Different log filters of one caller, with a key and without. */
  readonly maxLogFilters: number;
  readonly maxKeylessLogFilters: number;
  readonly maxSocketQueueBytes: number;
  readonly socketPingMs: number;
}

/** An answer that neither side moves for this long is cut. */
export const STALL_MS = 30_000;

/** Why a request is not taken that would be too much beside those under way. */
export const NO_ROOM_FOR_REQUEST = fault(
  "unavailable",
  "too many request bytes are in flight, of all callers (limits.max_in_flight_bytes) or of " +
    "this one (limits.max_caller_bytes)",
);
