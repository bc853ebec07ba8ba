// How callers of the checker reach nodes: HTTP connections that are kept, and WebSockets. Requests
// of one client go one after the other.
import { Client } from "undici";
import { WebSocket } from "ws";
import type { CacheClass } from "../../../src/core/routing/cache-terms.ts";

/** One call of a request. */
export interface WireCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** The answer to one call. */
export interface WireAnswer {
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly code?: string };
  };
  /** Where its client asks for it. */
  readonly svc_meta?: WireMeta;
}

/** What evidence says of an answer. */
export interface WireMeta {
  readonly source?: string;
  readonly cache?: { readonly result: string; readonly class?: CacheClass };
}

/** Answers in the order of the calls; null = the connection was lost. */
export type Answers = readonly WireAnswer[] | null;

/** Sends requests to one node. */
export interface NodeClient {
  /** Sends one call, or several as a batch. `seen` = the mark to send along; null = none. */
  send(
    calls: readonly WireCall[],
    seen: string | null,
  ): Promise<{ readonly answers: Answers; readonly seen: string | null }>;
  close(): Promise<void>;
}

/** Where a client connects to. */
export interface Target {
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it asks for the evidence of single calls; left out = it does not. */
  readonly asksMeta?: boolean;
}

/** A client by HTTP. */
export function httpClient({ url, path, headers, asksMeta = false }: Target): NodeClient {
  const client = new Client(url, { pipelining: 1 });
  return {
    async send(calls, seen) {
      try {
        const response = await client.request({
          method: "POST",
          path: asksMeta ? `${path}?include_meta=body` : path,
          headers: {
            "content-type": "application/json",
            ...headers,
            ...(seen === null ? {} : { "x-svc-seen": seen }),
          },
          body: bodyOf(calls),
        });
        const mark = response.headers["x-svc-seen"];
        return {
          answers: answersOf(calls, parseBody(await response.body.text())),
          seen: typeof mark === "string" ? mark : seen,
        };
      } catch {
        return { answers: null, seen };
      }
    },
    close: () => client.destroy(),
  };
}

/** A client by WebSocket. */
export async function socketClient(target: Target): Promise<NodeClient> {
  const { url, path, headers, asksMeta = false } = target;
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws${path}`, { headers });
  const received: (string | null)[] = [];
  let wake = (): void => {};
  const deliver = (text: string | null): void => {
    received.push(text);
    wake();
  };
  /** The next message; null = the connection was lost. */
  const next = async (): Promise<string | null> => {
    if (received.length === 0)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    return received.shift() ?? null;
  };
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  socket.on("message", (data) => deliver(String(data)));
  socket.on("close", () => deliver(null)).on("error", () => {});
  return {
    async send(calls, seen) {
      if (socket.readyState !== WebSocket.OPEN) return { answers: null, seen };
      socket.send(bodyOf(calls, asksMeta ? { svc_meta: "notify" } : {}));
      const text = await next();
      // The evidence of a single call follows its answer.
      const meta = asksMeta && text !== null ? await next() : null;
      if (text === null || (asksMeta && meta === null)) return { answers: null, seen };
      const answers = answersOf(calls, parseBody(text));
      if (meta === null) return { answers, seen };
      return { answers: answers.map((answer) => ({ ...answer, ...metaIn(meta) })), seen };
    },
    async close() {
      socket.terminate();
    },
  };
}

/** The evidence in a notification. */
function metaIn(text: string): Pick<WireAnswer, "svc_meta"> {
  const { params } = JSON.parse(text);
  return { svc_meta: params };
}

function bodyOf(calls: readonly WireCall[], more: Readonly<Record<string, string>> = {}): string {
  const requests = calls.map((call, at) => ({ jsonrpc: "2.0", id: at + 1, ...call, ...more }));
  return JSON.stringify(requests.length === 1 ? requests[0] : requests);
}

interface Reply extends WireAnswer {
  readonly id?: unknown;
}

/** A single answer to a batch is an error that stands for all of it. */
function answersOf(
  calls: readonly WireCall[],
  body: Reply | readonly Reply[],
): readonly WireAnswer[] {
  const replies = replyList(body);
  if (replies === null) return calls.map(() => singleOf(body));
  const byId = new Map(replies.map((it) => [it.id, it]));
  return calls.map((_, at) => byId.get(at + 1) ?? NO_ANSWER);
}

const NO_ANSWER: WireAnswer = { error: { code: 0, message: "no answer in the batch" } };

function replyList(body: Reply | readonly Reply[]): readonly Reply[] | null {
  return Array.isArray(body) ? body : null;
}

function singleOf(body: Reply | readonly Reply[]): Reply {
  return body as Reply;
}

function parseBody(text: string): Reply | readonly Reply[] {
  return JSON.parse(text);
}
