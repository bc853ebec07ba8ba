// How callers of the checker reach nodes: HTTP connections that are kept, and WebSockets. Requests
// of one client go one after the other.
import { Client } from "undici";
import { WebSocket } from "ws";

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
}

/** A client by HTTP. */
export function httpClient({ url, path, headers }: Target): NodeClient {
  const client = new Client(url, { pipelining: 1 });
  return {
    async send(calls, seen) {
      try {
        const response = await client.request({
          method: "POST",
          path,
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
export async function socketClient({ url, path, headers }: Target): Promise<NodeClient> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws${path}`, { headers });
  let deliver: (text: string | null) => void = () => {};
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  socket.on("message", (data) => deliver(String(data)));
  socket.on("close", () => deliver(null)).on("error", () => {});
  return {
    async send(calls, seen) {
      if (socket.readyState !== WebSocket.OPEN) return { answers: null, seen };
      const text = await new Promise<string | null>((resolve) => {
        deliver = resolve;
        socket.send(bodyOf(calls));
      });
      return { answers: text === null ? null : answersOf(calls, parseBody(text)), seen };
    },
    async close() {
      socket.terminate();
    },
  };
}

function bodyOf(calls: readonly WireCall[]): string {
  const requests = calls.map((call, at) => ({ jsonrpc: "2.0", id: at + 1, ...call }));
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
