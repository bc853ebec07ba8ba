// What the RPC surface works with, over HTTP and on sockets.
import type { MemoryBudget } from "../../upstream/memory-budget.ts";
import type { Wheel } from "../../upstream/wheel.ts";
import type { OldForms } from "../old-forms.ts";
import type { ArrivalParts } from "./arrival.ts";
import type { Compression } from "./compression.ts";
import type { ExchangeParts } from "./exchange.ts";
import type { RpcLimits } from "./limits.ts";
import type { PayPerCall } from "./session.ts";
import type { Toll } from "./toll.ts";

/** What the RPC surface works with. */
export interface RpcParts extends ExchangeParts, ArrivalParts {
  readonly wheel: Wheel;
  readonly limits: RpcLimits;
  readonly budget: MemoryBudget;
  readonly oldForms: OldForms;
  /** Null = answers are never compressed. */
  readonly compression: Compression | null;
  /** Null = calls take no payment. */
  readonly toll: Toll | null;
  /** Null = no call is paid for by itself. */
  readonly payPerCall: PayPerCall | null;
}
