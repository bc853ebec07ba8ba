// Providers over WebSocket: which socket a request or subscription uses. One socket per address,
// shared by all profiles that name it.

import type { Provider } from "../../core/provider/profile.ts";
import type { Runtime } from "../../runtime.ts";
import { MemoryBudget, USERS_PROVIDERS } from "../memory-budget.ts";
import { SsrfGuard } from "../ssrf-guard.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { Dispatch, SocketReport, Sockets } from "../transport.ts";
import { ProviderSocket } from "./provider-socket.ts";
import { SOCKET_LIMITS, type SocketLimits } from "./socket-limits.ts";

/** Dependencies of sockets. `limits` absent = the defaults; `budget` absent = unbounded memory. */
export interface SocketsParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly limits?: SocketLimits;
  readonly guard?: SsrfGuard;
  readonly budget?: MemoryBudget;
}

/** Creates sockets to providers, each opened when first needed. */
export function createSockets({
  runtime,
  timerWheel,
  limits = SOCKET_LIMITS,
  guard = new SsrfGuard(),
  budget = MemoryBudget.unbounded(),
}: SocketsParts): Sockets {
  // The connection of a configured provider also carries the subscriptions of others: what arrives
  // on it is counted but never refused.
  const rooms = { configured: budget.openRoom, users: budget.roomOf(USERS_PROVIDERS) };
  const sockets = new Map<string, ProviderSocket>();
  const keys = new WeakMap<Provider, string>();
  const draining = new Set<ProviderSocket>();
  let closed = false;

  function keyOf(provider: Provider): string {
    const key = keys.get(provider) ?? writeKey(provider);
    keys.set(provider, key);
    return key;
  }

  /** Not yet connected. */
  function newSocket({ wsUrl, headers, guarded }: Provider): ProviderSocket {
    return new ProviderSocket(
      { url: wsUrl ?? "", headers, guard: guarded ? guard : null },
      { runtime, timerWheel, limits, room: guarded ? rooms.users : rooms.configured },
    );
  }

  function socketTo(provider: Provider): ProviderSocket {
    const key = keyOf(provider);
    const socket = sockets.get(key) ?? newSocket(provider);
    if (closed) socket.drain();
    sockets.set(key, socket);
    return socket;
  }

  return {
    send: ({ provider, body, idStart, idEnd }, listener) =>
      socketTo(provider).send({ body, idStart, idEnd }, listener) ?? NEVER_SENT,
    subscribe: (provider, params, listener) => socketTo(provider).feeds.join(params, listener),
    keep: (provider, socketListener) => socketTo(provider).keep(socketListener),
    isFree: (provider) => socketTo(provider).isFree,
    renew: (provider) => sockets.get(keyOf(provider))?.renew(),
    report: (provider) => sockets.get(keyOf(provider))?.report ?? NOTHING_YET,
    retain(providers) {
      const used = new Set(providers.map(keyOf));
      for (const socket of draining) if (socket.done) draining.delete(socket);
      for (const [key, socket] of sockets) {
        if (used.has(key)) continue;
        sockets.delete(key);
        draining.add(socket);
        socket.drain();
      }
    },
    async close() {
      closed = true;
      await Promise.all([...sockets.values(), ...draining].map((socket) => socket.close()));
    },
  };
}

const NEVER_SENT: Dispatch = { sent: false, cancel() {} };
const NOTHING_YET: SocketReport = { state: "idle", subscriptions: 0, opened: 0, strayFrames: 0 };

/**
 * The key of a socket, equal for providers that share one: same address, same headers, both guarded
 * or neither.
 */
function writeKey({ wsUrl, headers, guarded }: Provider): string {
  const sorted = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return JSON.stringify([wsUrl, guarded, ...sorted.sort()]);
}
