// A routed call as a fake router gives it.
import { policyOf } from "../../src/core/routing/policy.ts";
import {
  CallContext,
  NOTHING_SENT,
  type RouteRequest,
} from "../../src/upstream/engine/call-context.ts";
import type { RoutedCall } from "../../src/upstream/engine/router.ts";

const SETTINGS = {
  maxAttempts: 3,
  cache: false,
  coalesce: false,
  hedge: null,
  split: false,
  view: false,
  own: false,
};

/** A routed call of which a test tells these facts; nobody was asked otherwise. */
export function fakeRoutedCall({
  request,
  startedAtMs,
  ...facts
}: Partial<RoutedCall> & {
  readonly request: RouteRequest;
  readonly startedAtMs: number;
}): RoutedCall {
  const { method, block } = request.call;
  const context = new CallContext(request, policyOf(method, block, SETTINGS), startedAtMs);
  return Object.assign(context, { cancel: () => NOTHING_SENT }, facts);
}
