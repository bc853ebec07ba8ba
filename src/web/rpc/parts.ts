// The services that the RPC surface is built from, over HTTP and WebSocket alike.
import type { Consistency } from "../../core/provider/profile.ts";
import type { MemoryBudget } from "../../upstream/memory-budget.ts";
import type { TimerWheel } from "../../upstream/timer-wheel.ts";
import type { LegacyForms } from "./answers/answer-headers.ts";
import type { Compression } from "./answers/compression.ts";
import type { AuthenticationParts } from "./authenticate.ts";
import type { SeenByCallers } from "./caller-view.ts";
import type { PipelineParts } from "./calls/pipeline-request.ts";
import type { RpcLimits } from "./limits.ts";
import type { RpcPaywall } from "./paid/rpc-paywall.ts";
import type { PayPerCall } from "./paid/session.ts";

export interface RpcParts extends PipelineParts, AuthenticationParts {
  readonly timerWheel: TimerWheel;
  /** The view of callers where neither they nor their profile ask for one. */
  readonly consistency: () => Consistency;
  /** The newest blocks that callers have seen. */
  readonly marks: SeenByCallers;
  readonly limits: RpcLimits;
  readonly budget: MemoryBudget;
  readonly legacyForms: LegacyForms;
  /** Null = answers are never compressed. */
  readonly compression: Compression | null;
  /** Null = requests take no payment for keys. */
  readonly rpcPaywall: RpcPaywall | null;
  /** Null = pay-per-call is not available. */
  readonly payPerCall: PayPerCall | null;
}
