// A client's socket without any library's help: calls, subscriptions and how it ended. Knows
// nothing of chains.
import { WebSocket } from "ws";
import { z } from "zod";

/** An answer as it came. */
export interface Reply {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string } | undefined;
}

/** A client's socket. */
export interface Caller {
  call(method: string, params?: readonly unknown[]): Promise<Reply>;
  /** Resolves once acknowledged; throws when refused. */
  subscribe(params: readonly unknown[], hear: (result: unknown) => void): Promise<string>;
  /** Code and reason of the close; null = open. */
  readonly closedWith: () => string | null;
  readonly closed: Promise<number>;
  close(): void;
}

const Message = z.object({
  id: z.number().optional(),
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
  params: z.object({ subscription: z.string(), result: z.unknown() }).optional(),
});

/** Opens a socket; a call that is still open when it closes is answered with an error. */
export async function openCaller(url: string): Promise<Caller> {
  const ws = new WebSocket(url);
  const open = new Map<number, (reply: Reply) => void>();
  const hearers = new Map<string, (result: unknown) => void>();
  let ids = 0;
  let code: number | null = null;
  let reason = "";
  const closed = new Promise<number>((resolve) => ws.on("close", resolve));
  ws.on("message", (data) => {
    const { id, params, ...reply } = Message.parse(JSON.parse(String(data)));
    if (params !== undefined) return hearers.get(params.subscription)?.(params.result);
    const done = open.get(id ?? 0);
    open.delete(id ?? 0);
    done?.(reply);
  });
  ws.on("close", (it, why) => {
    code = it;
    reason = why.toString();
    for (const done of open.values())
      done({ error: { code: it, message: "the socket was closed" } });
  });
  await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
  ws.on("error", () => {});
  const call = (
    method: string,
    params: readonly unknown[] = [],
    answered: (reply: Reply) => void = () => {},
  ): Promise<Reply> =>
    new Promise((resolve) => {
      if (code !== null) return resolve({ error: { code, message: "the socket is closed" } });
      const id = ++ids;
      open.set(id, (reply) => {
        answered(reply);
        resolve(reply);
      });
      ws.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  return {
    call: (method, params) => call(method, params),
    async subscribe(params, hear) {
      // Known before the next message is read: events may follow the acknowledgement at once.
      const { result, error } = await call("eth_subscribe", params, ({ result }) =>
        hearers.set(String(result), hear),
      );
      if (error !== undefined)
        throw new Error(
          `eth_subscribe ${JSON.stringify(params)}: ${error.message} (${error.code})`,
        );
      return String(result);
    },
    closedWith: () => (code === null ? null : `${code} ${reason}`),
    closed,
    close: () => ws.terminate(),
  };
}
