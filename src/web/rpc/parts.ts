// What the RPC surface works with, over HTTP and on sockets.
import type { MemoryBudget } from "../../upstream/memory-budget.ts";
import type { TimerWheel } from "../../upstream/timer-wheel.ts";
import type { AuthenticationParts } from "./authenticate.ts";
import type { Compression } from "./compression.ts";
import type { LegacyForms } from "./legacy-forms.ts";
import type { RpcLimits } from "./limits.ts";
import type { RpcPaywall } from "./paid/rpc-paywall.ts";
import type { PayPerCall } from "./paid/session.ts";
import type { PipelineParts } from "./pipeline-request.ts";

/** What the RPC surface works with. */
export interface RpcParts extends PipelineParts, AuthenticationParts {
  readonly timerWheel: TimerWheel;
  readonly limits: RpcLimits;
  readonly budget: MemoryBudget;
  readonly legacyForms: LegacyForms;
  /** Null = answers are never compressed. */
  readonly compression: Compression | null;
  /** Null = calls take no payment. */
  readonly rpcPaywall: RpcPaywall | null;
  /** Null = no call is paid for by itself. */
  readonly payPerCall: PayPerCall | null;
}
