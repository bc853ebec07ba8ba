// THE SPINE: one request in, one reply out, whatever door it came through. Reads the request, routes it, and gathers the evidence.
import { NO_BLOCK, readBlockRef } from "../../core/call.ts";
import { type Evidence, evidenceOf } from "../../core/evidence.ts";
import { fault } from "../../core/fault.ts";
import type { Span } from "../../core/json.ts";
import { type Envelope, readRequest, writeRequest } from "../../core/jsonrpc.ts";
import { type Method, methodOf } from "../../core/method.ts";
import type { Observer } from "../../observe.ts";
import type { Outcome, Route, Router } from "../../upstream/router.ts";
import type { World } from "../../world.ts";
import type { Address } from "./address.ts";

/** The end of one request, before it is written for the caller. */
export interface Reply {
  /** The caller's id as JSON text; null = a notification, which gets no answer. */
  readonly id: string | null;
  readonly outcome: Outcome;
  /** The id inside the upstream's body; equal to `id` when that body can be passed on untouched. */
  readonly wireId: string | null;
  /** Null when no provider was involved. */
  readonly route: Route | null;
  readonly address: Address;
  readonly requestId: string;
}

/** What every exchange works with. */
export interface ExchangeParts {
  readonly world: World;
  readonly router: Router;
  readonly observer: Observer;
  /** How long a method may take, in milliseconds. */
  readonly deadlineMs: (method: Method) => number;
}

/** One request as it came through a door. `bytes` between `start` and `end` is known to be valid JSON. */
export interface Incoming {
  readonly bytes: Buffer;
  readonly span: Span;
  readonly address: Address;
  readonly requestId: string;
  /** False where the reply is needed in one piece. */
  readonly mayStream: boolean;
}

/** Serves one request. Returns the way to cancel it; `done` is called once, or never after a cancel. */
export function exchange(parts: ExchangeParts, incoming: Incoming, done: (reply: Reply) => void): (() => void) | null {
  const { bytes, span, address } = incoming;
  const envelope = readRequest(bytes, span.start, span.end);
  if (envelope.kind === "invalid") {
    parts.observer.refused("invalid_request");
    const outcome: Outcome = { kind: "fault", fault: fault("invalid_request", envelope.message) };
    done({ id: envelope.id, outcome, wireId: null, route: null, address, requestId: incoming.requestId });
    return null;
  }
  const method = methodOf(envelope.method);
  const here = answerHere(method, envelope.method, address);
  if (here !== null) {
    parts.observer.local(address.series, method, here.kind);
    done({ id: envelope.id, outcome: here, wireId: null, route: null, address, requestId: incoming.requestId });
    return null;
  }
  return route(parts, incoming, envelope, done);
}

/** The evidence of a reply; null when no provider was involved. */
export function evidenceOfReply(reply: Reply, now: number): Evidence | null {
  const { route, address } = reply;
  if (route === null) return null;
  const selected = route.answeredBy;
  return evidenceOf({
    requestId: reply.requestId,
    strategy: address.strategy,
    chain: address.chain,
    transport: route.request.transport,
    profile: address.profile,
    plan: route.plan,
    attempts: route.traces.map((it) => it.attempt),
    selected,
    breakerState: selected === null ? null : address.tracker.health(selected, route.request.transport).breaker,
    endToEndMs: now - route.startedAtMs,
  });
}

function route(parts: ExchangeParts, incoming: Incoming, envelope: Envelope, done: (reply: Reply) => void): () => void {
  const { bytes, span, address, requestId } = incoming;
  const { id } = envelope;
  const method = methodOf(envelope.method);
  const untouched = envelope.plain && id !== null;
  const wireId = untouched ? id : "1";
  const params = envelope.paramsStart === -1 ? null : bytes.subarray(envelope.paramsStart, envelope.paramsEnd);
  const whole = span.start === 0 && span.end === bytes.length ? bytes : bytes.subarray(span.start, span.end);
  const call = {
    methodName: envelope.method,
    method,
    block: method.block === null ? NO_BLOCK : readBlockRef(bytes, { start: envelope.paramsStart, end: envelope.paramsEnd }, method),
    body: untouched ? whole : writeRequest(wireId, envelope.method, params),
    wireId,
  };
  const request = {
    call,
    tracker: address.tracker,
    strategy: address.strategy,
    pin: address.pin,
    transport: "http" as const,
    deadlineMs: parts.deadlineMs(method),
    mayStream: incoming.mayStream,
  };
  const routing = parts.router.route(request, (outcome, finished) => {
    parts.observer.routed(address.series, finished, outcome.kind, requestId);
    done({ id, outcome, wireId, route: finished, address, requestId });
  });
  return () => {
    routing.cancel();
    parts.observer.cancelled(address.series, method);
  };
}

/** What needs no provider: facts of the configuration, and methods that are served nowhere or only on a socket. */
function answerHere(method: Method, name: string, address: Address): Outcome | null {
  switch (method.handling) {
    case "route":
      return null;
    case "local": {
      if (address.pin !== null) return null;
      const { chainId } = address.chain;
      const body = Buffer.from(name === "net_version" ? `"${chainId}"` : `"0x${chainId.toString(16)}"`);
      return { kind: "result", body, start: 0, end: body.length };
    }
    case "blocked":
      return { kind: "fault", fault: fault("method_blocked", `${name} would use keys held by a node and is not served`) };
    case "socket_only":
      return { kind: "fault", fault: fault("websocket_only", `${name} needs a WebSocket`, { details: { websocket_url: address.socketPath } }) };
  }
}
