// Calls that the service makes by itself for its streams: openings, polls, backfill and checks of
// logs. They pass the engine as the calls of callers do. Knows no stream.
import type { Channel, Counting } from "../../core/provider/attempt.ts";
import type { Transport } from "../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import { newCall } from "../../core/rpc/call.ts";
import type { Answer } from "../engine/answer.ts";
import type { RouteRequest } from "../engine/call-context.ts";
import type { RoutedCall, Router } from "../engine/router.ts";

/** A method and its parameters, and how long the call may take. */
export interface ServiceQuery {
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
  readonly deadlineMs: number;
}

/** A call of the service, and who may be asked. */
export interface ServiceCall
  extends ServiceQuery,
    Pick<RouteRequest, "tracker" | "strategy" | "pin" | "avoid" | "counts" | "upstreams"> {
  readonly transport: Transport;
}

/** A query to one provider. */
export interface ProviderQuery extends ServiceQuery, Pick<RouteRequest, "tracker"> {
  readonly channel: Channel;
  readonly counts: Counting;
}

/** Routes a call of the service. */
export function routeServiceCall(
  router: Pick<Router, "route">,
  { method, params, transport, ...request }: ServiceCall,
  done: (answer: Answer, route: RoutedCall) => void,
): RoutedCall {
  const call = newCall(method, params);
  return router.route(
    { ...request, call, transport, caller: SERVICE_CALLER, mayStream: false, room: undefined },
    done,
  );
}

/**
 * Queries one provider. `done` gets the raw JSON of the result, or null when the provider gave
 * none.
 */
export function queryProvider(
  router: Pick<Router, "route">,
  { channel, ...query }: ProviderQuery,
  done: (result: Buffer | null, route: RoutedCall) => void,
): RoutedCall {
  const { provider, transport } = channel;
  return routeServiceCall(
    router,
    { ...query, strategy: "priority", pin: provider, avoid: null, transport },
    ({ outcome }, route) => {
      // Copied: the buffer of an answer is much larger than most results, and results may be kept
      // for a long time.
      const result =
        outcome.kind === "result"
          ? Buffer.from(outcome.body.subarray(outcome.start, outcome.end))
          : null;
      done(result, route);
    },
  );
}

/** The queries of one source that are under way. */
export class OpenQueries {
  readonly #router: Pick<Router, "route">;
  readonly #routes = new Set<RoutedCall>();
  #closed = false;

  constructor(router: Pick<Router, "route">) {
    this.#router = router;
  }

  /** Queries a provider. Never resolves after `close`. */
  run(query: ProviderQuery): Promise<Buffer | null> {
    return new Promise((resolve) => {
      if (this.#closed) return;
      let over = false;
      const route = queryProvider(this.#router, query, (result, ended) => {
        over = true;
        this.#routes.delete(ended);
        resolve(result);
      });
      if (!over) this.#routes.add(route);
    });
  }

  close(): void {
    this.#closed = true;
    for (const route of this.#routes) route.cancel();
    this.#routes.clear();
  }
}
