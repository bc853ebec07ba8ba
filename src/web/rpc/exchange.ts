// THE SPINE: one request in, one reply out, whatever door it came through. Reads the request, routes it, and gathers the evidence.

import type { Plan } from "../../core/attempt.ts";
import { NO_BLOCK, readBlockRef } from "../../core/call.ts";
import { type Evidence, evidenceOf } from "../../core/evidence.ts";
import { fault } from "../../core/fault.ts";
import type { Span } from "../../core/json.ts";
import { type Envelope, readRequest, writeRequest } from "../../core/jsonrpc.ts";
import { type Method, methodOf } from "../../core/method.ts";
import type { Transport } from "../../core/profile.ts";
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
  /** How the caller is connected. */
  readonly transport: Transport;
  /** True when the evidence is wanted as a message of its own. */
  readonly notify: boolean;
  /** Waits to hear whether the reply was written as it is; null = nobody does. */
  readonly written: ((shown: boolean) => void) | null;
}

/** What one connection keeps for its caller beyond single requests: the subscriptions. */
export interface Desk {
  /** Returns the way to cancel it; null = it is over. */
  serve(request: DeskRequest, done: (answer: DeskAnswer) => void): (() => void) | null;
}

/** A request that only a desk can serve. */
export interface DeskRequest {
  readonly methodName: string;
  readonly method: Method;
  /** JSON text; null = none were sent. */
  readonly params: string | null;
  readonly address: Address;
  /** False for a notification, whose reply nobody would see. */
  readonly answered: boolean;
}

/** What a desk says. */
export type DeskAnswer = Pick<Reply, "outcome" | "route" | "written">;

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
  /** How the caller is connected. */
  readonly transport: Transport;
  /** Null where the connection is not kept. */
  readonly desk: Desk | null;
}

/** Serves one request. Returns the way to cancel it; `done` is called once, or never after a cancel. */
export function exchange(parts: ExchangeParts, incoming: Incoming, done: (reply: Reply) => void): (() => void) | null {
  const { bytes, span, address, requestId, transport, desk } = incoming;
  const envelope = readRequest(bytes, span.start, span.end);
  if (envelope.kind === "invalid") {
    parts.observer.refused("invalid_request");
    const outcome: Outcome = { kind: "fault", fault: fault("invalid_request", envelope.message) };
    done({ id: envelope.id, outcome, wireId: null, route: null, address, requestId, transport, notify: false, written: null });
    return null;
  }
  const method = methodOf(envelope.method);
  if (method.handling === "socket_only" && desk !== null) return serveAtDesk(parts, incoming, { envelope, method, desk }, done);
  const here = answerHere(method, envelope.method, address);
  if (here !== null) {
    parts.observer.local(address.series, method, here.kind);
    const { id, notify } = envelope;
    done({ id, outcome: here, wireId: null, route: null, address, requestId, transport, notify, written: null });
    return null;
  }
  return route(parts, incoming, envelope, done);
}

/** The evidence of a reply. */
export function evidenceOfReply(reply: Reply, now: number): Evidence {
  const { route, address } = reply;
  const selected = route?.answeredBy ?? null;
  return evidenceOf({
    requestId: reply.requestId,
    strategy: address.strategy,
    chain: address.chain,
    transport: reply.transport,
    profile: address.profile,
    plan: route?.plan ?? NOBODY,
    attempts: route?.traces.map((it) => it.attempt) ?? [],
    selected,
    breakerState: selected === null ? null : address.tracker.health(selected, route?.traces.at(-1)?.attempt.transport ?? "http").breaker,
    endToEndMs: route === null ? 0 : now - route.startedAtMs,
  });
}

const NOBODY: Plan = { candidates: [], excluded: [] };

interface DeskMatter {
  readonly envelope: Envelope;
  readonly method: Method;
  readonly desk: Desk;
}

function serveAtDesk(parts: ExchangeParts, incoming: Incoming, matter: DeskMatter, done: (reply: Reply) => void): (() => void) | null {
  const { bytes, address, requestId, transport } = incoming;
  const { envelope, method, desk } = matter;
  const { id, notify } = envelope;
  const params = envelope.paramsStart === -1 ? null : bytes.toString("utf8", envelope.paramsStart, envelope.paramsEnd);
  const request = { methodName: envelope.method, method, params, address, answered: id !== null };
  const cancel = desk.serve(request, (answer) => {
    if (answer.route === null) parts.observer.local(address.series, method, answer.outcome.kind);
    else parts.observer.routed(address.series, answer.route, answer.outcome.kind, requestId);
    done({ id, wireId: null, address, requestId, transport, notify, ...answer });
  });
  if (cancel === null) return null;
  return () => {
    cancel();
    parts.observer.cancelled(address.series, method);
  };
}

function route(parts: ExchangeParts, incoming: Incoming, envelope: Envelope, done: (reply: Reply) => void): () => void {
  const { bytes, span, address, requestId, transport } = incoming;
  const { id, notify } = envelope;
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
    transport: null,
    avoid: null,
    deadlineMs: parts.deadlineMs(method),
    mayStream: incoming.mayStream,
  };
  const routing = parts.router.route(request, (outcome, finished) => {
    parts.observer.routed(address.series, finished, outcome.kind, requestId);
    const inBody = outcome.kind === "result" ? outcome.wireId : wireId;
    done({ id, outcome, wireId: inBody, route: finished, address, requestId, transport, notify, written: null });
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
      return { kind: "result", body, start: 0, end: body.length, wireId: null };
    }
    case "blocked":
      return { kind: "fault", fault: fault("method_blocked", `${name} would use keys held by a node and is not served`) };
    case "socket_only":
      return { kind: "fault", fault: fault("websocket_only", `${name} needs a WebSocket`, { details: { websocket_url: address.socketPath } }) };
  }
}
