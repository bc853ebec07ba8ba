// Bounds of the RPC surface.

/** Bounds of the RPC surface. */
export interface RpcLimits {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly batchConcurrency: number;
  /** Request bodies and batch answers held at one time, by all requests together. */
  readonly maxInFlightBytes: number;
  /** Gathered answers held at one time for one caller: an account, or an address without a key. */
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
