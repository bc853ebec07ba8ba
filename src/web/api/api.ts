// The HTTP API of a hosted service: its operations over the store, with their limits.
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import {
  type OpenAddressLimit,
  type OpenCreationLimit,
  openAddressLimit,
} from "../../core/workers/shared-address-limits.ts";
import { OPERATIONS } from "../contract/contract.ts";
import type { PurchasePaywall } from "../payment/purchase-paywall.ts";
import type { OperatorCredentials } from "./authenticate.ts";
import {
  type Api,
  createOperationServer,
  type OperationServerParts,
  type ServerBounds,
} from "./operation-server.ts";
import type { HandlerParts } from "./parts.ts";
import { createServing } from "./serve.ts";

export interface ApiParts
  extends Omit<HandlerParts, "creations" | "writes" | "payments">,
    OperatorCredentials,
    Pick<OperationServerParts, "log" | "publicUrl" | "trustedProxies"> {
  /**
   * The paywall instance that RPC calls use, too, so that the limits by address are shared. Null =
   * nothing can be bought.
   */
  readonly paywall: PurchasePaywall | null;
  /** Keys that one address may create per hour. */
  readonly keysPerHour: number;
  /** Absent = the defaults; tests tighten them. */
  readonly limits?: ApiLimits;
  /** Opens the limits by address; absent = those of one process. */
  readonly openLimit?: OpenAddressLimit;
  /** Opens the limits of new keys; absent = those of one process. */
  readonly openCreationLimit?: OpenCreationLimit;
}

/** Limits of the API. */
export interface ApiLimits extends ServerBounds {
  /** Invalid credentials per address and minute. */
  readonly missesPerMinute: number;
  /** Changes per account and minute. */
  readonly writesPerMinute: number;
}

/** The defaults. */
const API_LIMITS: ApiLimits = {
  maxReading: 1_024,
  maxUnderWay: 256,
  missesPerMinute: 30,
  writesPerMinute: 120,
};

const PREFIX = "/api/v1/";
const MINUTE_S = 60;
const HOUR_S = 3_600;

/** Creates the API over a store. */
export function createApi(parts: ApiParts): Api {
  const { limits = API_LIMITS } = parts;
  const { openLimit = openAddressLimit, openCreationLimit = openAddressLimit } = parts;
  const creations = openCreationLimit("key creations", sizeOf(parts.keysPerHour, HOUR_S));
  const misses = openLimit("API credentials", sizeOf(limits.missesPerMinute, MINUTE_S));
  const writes = openLimit("API changes", sizeOf(limits.writesPerMinute, MINUTE_S));
  return createOperationServer({
    ...parts,
    limits,
    operations: OPERATIONS.filter((operation) => operation.servedBy === "api"),
    claims: (path) => path.startsWith(PREFIX),
    serve: createServing(
      { ...parts, payments: parts.paywall?.payments ?? null, creations, writes },
      { ...parts, misses },
    ),
  });
}

/** The size of a limit of `count` requests in `seconds`; all of them may come at once. */
function sizeOf(count: number, seconds: number): RateLimitSize {
  return { perSecond: count / seconds, burst: count };
}
