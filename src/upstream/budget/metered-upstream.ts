// Counts everything that is sent to providers with limits: calls of callers, probes, checks and
// subscriptions. What finds no room is not sent; a request of the service itself waits for room.
import { crowdedFailure } from "../../core/rpc/failure.ts";
import type { Runtime } from "../../runtime.ts";
import type { AnswerListener, Dispatch, OutgoingRequest, Sockets, Upstream } from "../transport.ts";
import type { ProviderBudget, ProviderBudgets } from "./provider-budget.ts";

/** What metering works with. */
export interface MeterParts {
  readonly runtime: Pick<Runtime, "after">;
  readonly budgets: Pick<ProviderBudgets, "find">;
}

/** Sockets that send nothing beyond the limits of providers. */
export function meteredSockets(sockets: Sockets, parts: MeterParts): Sockets {
  const { budgets } = parts;
  return {
    ...meteredUpstream(sockets, parts),
    subscribe(provider, params, listener) {
      const budget = budgets.find(provider);
      const send = (): Dispatch => sockets.subscribe(provider, params, listener);
      const refuse = (): void => listener.refused(crowdedFailure(), null);
      if (budget === null) return send();
      return sendWithRoom(parts, [budget, "eth_subscribe"], send, refuse);
    },
    isFree: (provider) => sockets.isFree?.(provider) ?? true,
    retain: (providers) => sockets.retain(providers),
    close: () => sockets.close(),
    keep: (provider, socketListener) => sockets.keep(provider, socketListener),
    renew: (provider) => sockets.renew(provider),
    report: (provider) => sockets.report(provider),
  };
}

/** A transport that sends nothing beyond the limits of providers. */
export function meteredUpstream(
  upstream: Pick<Upstream, "send">,
  parts: MeterParts,
): Pick<Upstream, "send"> {
  return {
    send(outgoing, listener) {
      const budget = parts.budgets.find(outgoing.provider);
      if (budget === null) return upstream.send(outgoing, listener);
      const { methodName = "" } = outgoing;
      const send = (): Dispatch =>
        budget.countsInFlight
          ? sendCounted(upstream, budget, outgoing, listener)
          : upstream.send(outgoing, listener);
      const refuse = (): void => listener.failed(crowdedFailure(), null);
      if (outgoing.isProbe === true) return sendWithRoom(parts, [budget, methodName], send, refuse);
      if (budget.take(methodName) === null) return send();
      refuse();
      return NOT_SENT;
    },
  };
}

const NOT_SENT: Dispatch = { sent: false, queued: true, cancel() {} };

/** Sends a request that is counted as in flight until its answer has ended. */
function sendCounted(
  upstream: Pick<Upstream, "send">,
  budget: ProviderBudget,
  outgoing: OutgoingRequest,
  listener: AnswerListener,
): Dispatch {
  let isOver = false;
  const over = (): void => {
    if (!isOver) budget.release();
    isOver = true;
  };
  const dispatch = upstream.send(outgoing, {
    result(body, span, pool) {
      over();
      listener.result(body, span, pool);
    },
    stream: (stream, first) => listener.stream(stream, first),
    heard: () => listener.heard?.(),
    streamed: over,
    broken(message) {
      over();
      listener.broken(message);
    },
    failed(failure, raw) {
      over();
      listener.failed(failure, raw);
    },
  });
  return dispatchOf(() => dispatch, over);
}

/** The request that is sent now or later; `onCancel` is called before it ends. */
function dispatchOf(current: () => Dispatch, onCancel: () => void): Dispatch {
  return {
    get sent() {
      return current().sent;
    },
    get queued() {
      return current().queued === true;
    },
    get batch() {
      return current().batch ?? null;
    },
    cancel() {
      onCancel();
      current().cancel();
    },
  };
}

/** Sends a request of the service itself once its provider has room. */
function sendWithRoom(
  { runtime }: MeterParts,
  [budget, methodName]: readonly [ProviderBudget, string],
  send: () => Dispatch,
  refuse: () => void,
): Dispatch {
  let dispatch = NOT_SENT;
  let cancelWait = (): void => {};
  let waits = 0;
  const begin = (): void => {
    if (budget.take(methodName, true) === null) {
      dispatch = send();
      return;
    }
    const waitMs = budget.waitMs(methodName);
    const isHopeless = waitMs > LONGEST_WAIT_MS || ++waits > MAX_WAITS;
    if (!isHopeless) budget.reserve();
    // Its caller does not know it yet: it is not refused at once.
    cancelWait = isHopeless
      ? runtime.after(0, refuse)
      : runtime.after(Math.max(LEAST_WAIT_MS, waitMs), begin);
  };
  begin();
  return dispatchOf(
    () => dispatch,
    () => cancelWait(),
  );
}

/** A provider that has no room for longer than this is not waited for. */
const LONGEST_WAIT_MS = 2_000;
const LEAST_WAIT_MS = 2;
const MAX_WAITS = 500;
