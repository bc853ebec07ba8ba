// The routing state of a subscription in recovery: a provider with an open circuit is tried last
// instead of being excluded, and failures do not count. Otherwise the retries of many subscriptions
// after one lost connection would open every circuit for longer than a subscription may wait.
import type { Attempt, Channel } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { BlockRef, Call } from "../../core/rpc/call.ts";
import type { Method } from "../../core/rpc/method.ts";
import type { Selection } from "../health/tracker.ts";
import { ServiceState } from "./service-state.ts";

/** A tracker without open circuits. Its user must limit how often it is asked. */
export class BreakerBypass extends ServiceState {
  plan(call: Call, selection: Selection): Plan {
    const { candidates, excluded } = this.strict.plan(call, selection);
    const { transport } = selection;
    if (transport === null) return { candidates, excluded };
    const closedOff = excluded.filter(
      ({ reason }) => reason === "circuit_open" || reason === "trial_in_flight",
    );
    const last: readonly Channel[] = closedOff.map(({ provider }) => ({ provider, transport }));
    return {
      candidates: [...candidates, ...last],
      excluded: excluded.filter((exclusion) => !closedOff.includes(exclusion)),
    };
  }

  admit(): boolean {
    return true;
  }

  record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void {
    if (attempt.verdict?.effect.kind !== "failure")
      this.strict.record(method, attempt, block, name);
  }

  heard(provider: Provider, transport: Transport): void {
    this.strict.heard(provider, transport);
  }

  waitMs(call: Call, selection: Selection): number | null {
    return this.strict.waitMs(call, selection);
  }
}
