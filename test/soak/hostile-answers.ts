// Providers that answer more, less or something else than they were asked, as tables of shapes, and
// a server on bare sockets that plays one of them. None of them lies under the id that a request
// was sent with: such an answer is the provider's own, however wrong.
import { createServer, type Socket } from "node:net";
import { createServer as createSecureServer, type TlsOptions } from "node:tls";
import { between } from "./chance.ts";

/** One request that reached the provider. */
export interface Victim {
  /** The id on the wire, as JSON text. */
  readonly id: string;
  /** What only the answer to this request may contain. */
  readonly secret: string;
}

/** What a shape can use to answer one request. */
export interface Fixture {
  readonly socket: Socket;
  readonly victim: Victim;
  /** Other requests that were answered or wait, newest first, on any connection. */
  readonly others: readonly Victim[];
  readonly random: () => number;
  /** Writes to this connection, or to another one that is open. */
  write(text: string): void;
  writeElsewhere(text: string): void;
  /** Does something in so many milliseconds; 0 = in the next turn. */
  later(ms: number, run: () => void): void;
}

/** One way of answering. */
export interface Shape {
  readonly name: string;
  /** True = answers are long enough to be passed on while they arrive. */
  readonly long?: boolean;
  /** Share of the requests that are so large that they are not written at once. */
  readonly largeShare?: number;
  /** What is said on a connection before anything was asked. */
  readonly greeting?: (fixture: Omit<Fixture, "victim">) => void;
  /** Said as soon as the first bytes of a request are here. */
  readonly early?: (fixture: Omit<Fixture, "victim">) => void;
  /** Answers one request; null = always soundly. */
  readonly answer: ((fixture: Fixture) => void) | null;
}

/** The mark of text that is nobody's answer. */
export const STRANGER = "stranger";
/** Longer than any answer that is held before it is passed on. */
const LONG_CHARS = 90_000;

/**
 * A result for a victim: its secret, for long answers again and again, so that every part of it
 * shows whose it is.
 */
export function resultFor(secret: string, long: boolean): string {
  return long ? `"${secret.repeat(Math.ceil(LONG_CHARS / secret.length))}"` : `"${secret}"`;
}

const json = (id: string, result: string): string =>
  `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
const failure = (id: string, text: string): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"${text}"}}`;
const http = (body: string, lines = "", status = "200 OK"): string =>
  `HTTP/1.1 ${status}\r\n${lines}Content-Type: application/json\r\nContent-Length: ` +
  `${Buffer.byteLength(body)}\r\n\r\n${body}`;
const chunked = (body: string, end = "0\r\n\r\n"): string =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: ` +
  `chunked\r\n\r\n${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n${end}`;
const feeds = (text: string): string => text.replaceAll("\r\n", "\n");

/** The answer that this request should get. */
const own = ({ victim }: Fixture, long = false): string =>
  http(json(victim.id, resultFor(victim.secret, long)));
/** The answer to some earlier request, secret and all. */
function older({ others, random, victim }: Fixture, long = false): string {
  const other = others[Math.floor(random() * others.length)] ?? victim;
  return http(json(other.id, resultFor(other.secret, long)));
}
/** An answer that nobody asked for, under an id of the provider's choice. */
const strange = (id: string): string => http(json(id, `"${STRANGER}"`));
/** An id that the next request might have. */
const guess = ({ victim, random }: Fixture): string =>
  String(Number(victim.id) + between(random, 1, 40_000));

/** Answers soundly, then says something more at some time. */
function surplus(
  name: string,
  ms: number | "same write",
  more: (fixture: Fixture) => string,
  long = false,
): Shape {
  return {
    name,
    long,
    answer(fixture) {
      if (ms === "same write") return fixture.write(own(fixture, long) + more(fixture));
      fixture.write(own(fixture, long));
      fixture.later(ms, () => fixture.write(more(fixture)));
    },
  };
}

/** Answers in the place of the sound answer. */
function instead(name: string, answer: (fixture: Fixture) => void, long = false): Shape {
  return { name, long, answer };
}

/** Every shape. */
export const SHAPES: readonly Shape[] = [
  surplus("the same answer again, in the same write", "same write", own),
  surplus("the same answer again, in the next turn", 0, own),
  surplus("the same answer again, 1 ms later", 1, own),
  surplus("the same answer again, 20 ms later", 20, own),
  surplus("an earlier caller's answer, in the next turn", 0, older),
  surplus("an earlier caller's answer, 1 ms later", 1, older),
  surplus("an earlier caller's answer, 20 ms later", 20, older),
  surplus("an answer under the id that all callers use, in the next turn", 0, () => strange("1")),
  surplus("an answer under the id that all callers use, 1 ms later", 1, () => strange("1")),
  surplus("an answer under the next id, 1 ms later", 1, ({ victim }) =>
    strange(String(Number(victim.id) + 1)),
  ),
  surplus("forty answers under ids to come, 1 ms later", 1, (fixture) =>
    Array.from({ length: 40 }, () => strange(guess(fixture))).join(""),
  ),
  surplus("a result without an id, in the next turn", 0, () =>
    http(`{"jsonrpc":"2.0","result":"${STRANGER}"}`),
  ),
  surplus("a result with the id null, in the next turn", 0, () => strange("null")),
  surplus("an error with the id null, in the next turn", 0, () => http(failure("null", STRANGER))),
  surplus("an error with the id null, 1 ms later", 1, () =>
    http(failure("null", STRANGER), "", "400 Bad Request"),
  ),
  surplus("an error under the id that all callers use, 1 ms later", 1, () =>
    http(failure("1", STRANGER)),
  ),
  surplus("an error under an earlier caller's id, 1 ms later", 1, ({ others, victim }) =>
    http(failure((others[0] ?? victim).id, STRANGER)),
  ),
  surplus(
    "interim heads and an earlier answer, 1 ms later",
    1,
    (fixture) => `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${older(fixture)}`,
  ),
  surplus(
    "a burst of six answers, in the same write",
    "same write",
    (fixture) =>
      own(fixture) +
      older(fixture) +
      strange("1") +
      older(fixture) +
      strange(guess(fixture)) +
      own(fixture),
  ),
  surplus("a long answer again, 1 ms later", 1, (fixture) => own(fixture, true), true),
  surplus(
    "an earlier caller's long answer in chunks, in the next turn",
    0,
    (fixture) => chunked(older(fixture, true).split("\r\n\r\n")[1] ?? ""),
    true,
  ),
  surplus("the same answer with bare line feeds, 1 ms later", 1, (fixture) => feeds(own(fixture))),
  {
    name: "half of an earlier answer 1 ms later, the other half with the next request",
    answer(fixture) {
      fixture.write(own(fixture));
      const rest = older(fixture);
      fixture.later(1, () => fixture.write(rest.slice(0, 40)));
      fixture.later(between(fixture.random, 2, 8), () => fixture.write(rest.slice(40)));
    },
  },
  {
    name: "an answer before anything was asked",
    greeting: (fixture) =>
      fixture.write(
        http(json(fixture.others[0]?.id ?? "1", `"${fixture.others[0]?.secret ?? STRANGER}"`)),
      ),
    answer: null,
  },
  {
    name: "an earlier answer while the request is still written",
    largeShare: 0.2,
    early: (fixture) =>
      fixture.write(
        http(json(fixture.others[0]?.id ?? "1", `"${fixture.others[0]?.secret ?? STRANGER}"`)),
      ),
    answer: null,
  },
  instead("204 with a whole answer behind it", (fixture) =>
    fixture.write(`HTTP/1.1 204 No Content\r\n\r\n${older(fixture)}`),
  ),
  instead("304 with a length and a body", (fixture) =>
    fixture.write(older(fixture).replace("200 OK", "304 Not Modified")),
  ),
  instead("a length that is too short for two answers", (fixture) =>
    fixture.write(own(fixture) + json("1", `"${STRANGER}"`)),
  ),
  instead("a last chunk with an answer behind it", (fixture) =>
    fixture.write(chunked(json(fixture.victim.id, `"${fixture.victim.secret}"`)) + older(fixture)),
  ),
  instead("trailers that are an answer", (fixture) =>
    fixture.write(
      chunked(
        json(fixture.victim.id, `"${fixture.victim.secret}"`),
        `0\r\n${older(fixture)}\r\n\r\n`,
      ),
    ),
  ),
  instead("the answer goes to another caller's connection", (fixture) =>
    fixture.writeElsewhere(own(fixture)),
  ),
  instead("always the answer to an earlier request", (fixture) => fixture.write(older(fixture))),
  instead(
    "another id behind a long result",
    ({ others, victim, write }) => {
      const other = others[0] ?? { id: "1", secret: STRANGER };
      write(
        http(
          `{"jsonrpc":"2.0","result":${resultFor(other === victim ? STRANGER : other.secret, true)},"id":${other.id}}`,
        ),
      );
    },
    true,
  ),
  instead(
    "two ids, the right one and another, around somebody else's result",
    ({ others, victim, write, random }) => {
      const other = others[0] ?? { id: "1", secret: STRANGER };
      const ids =
        random() < 0.5
          ? `"id":${victim.id},"id":${other.id}`
          : `"id":${other.id},"\\u0069d":${victim.id}`;
      write(http(`{"jsonrpc":"2.0",${ids},"result":"${other.secret}"}`));
    },
  ),
];

/** A provider that plays one shape. */
export interface HostileProvider {
  readonly port: number;
  /** Requests that were answered in the manner of the shape. */
  readonly played: () => number;
  close(): Promise<void>;
}

const MAX_OTHERS = 64;
/** Share of the requests that are answered soundly, so that connections live. */
const SOUND_SHARE = 0.4;
const SLOW_SHARE = 0.5;
const SLOW_MS = 3;

/** Starts a provider; `tls` null = on plain sockets. */
export async function startHostileProvider(
  shape: Shape,
  random: () => number,
  tls: TlsOptions | null,
): Promise<HostileProvider> {
  const sockets = new Set<Socket>();
  const timers = new Set<() => void>();
  const others: Victim[] = [];
  let played = 0;
  const fixtureAt = (socket: Socket): Omit<Fixture, "victim"> => ({
    socket,
    others,
    random,
    write: (text) => void (socket.writable && socket.write(text)),
    writeElsewhere(text) {
      const open = [...sockets].filter((it) => it !== socket && it.writable);
      (open[Math.floor(random() * open.length)] ?? socket).write(text);
    },
    later(ms, run) {
      const act = (): void => {
        timers.delete(cancel);
        run();
      };
      const cancel =
        ms === 0
          ? cancelOf(setImmediate(act), clearImmediate)
          : cancelOf(setTimeout(act, ms), clearTimeout);
      timers.add(cancel);
    },
  });
  const serve = (socket: Socket, victim: Victim): void => {
    const fixture: Fixture = { ...fixtureAt(socket), victim };
    const sound = shape.answer === null || random() < SOUND_SHARE;
    const act = (): void => {
      if (sound) fixture.write(own(fixture, shape.long));
      else shape.answer?.(fixture);
      if (!sound) played++;
      others.unshift(victim);
      if (others.length > MAX_OTHERS) others.pop();
    };
    if (random() < SLOW_SHARE) fixture.later(between(random, 1, SLOW_MS), act);
    else act();
  };
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    const talk = (say: Shape["greeting"]): void => {
      // The first is always played: a few connections may last for all calls.
      if (say === undefined || (played > 0 && random() < SOUND_SHARE)) return;
      played++;
      say(fixtureAt(socket));
    };
    talk(shape.greeting);
    hear(
      socket,
      () => talk(shape.early),
      (victim) => serve(socket, victim),
    );
  };
  const server =
    tls === null
      ? createServer(accept)
      : createSecureServer({ ...tls, ALPNProtocols: ["http/1.1"] }, accept);
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    played: () => played,
    async close() {
      for (const cancel of timers) cancel();
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function cancelOf<T>(timer: T, clear: (timer: T) => void): () => void {
  return () => clear(timer);
}

/** Reads requests; `begun` is told of each whose end has yet to come. */
function hear(socket: Socket, begun: () => void, asked: (victim: Victim) => void): void {
  let pieces: Buffer[] = [];
  let size = 0;
  let wanted = -1;
  socket.on("data", (chunk: Buffer) => {
    pieces.push(chunk);
    size += chunk.length;
    while (size > 0) {
      if (wanted === -1) {
        const bytes = Buffer.concat(pieces);
        pieces = [bytes];
        const end = bytes.indexOf("\r\n\r\n");
        if (end === -1) return;
        wanted =
          end + 4 + Number(/content-length: (\d+)/i.exec(bytes.toString("latin1", 0, end))?.[1]);
        if (size < wanted) begun();
      }
      if (size < wanted) return;
      const bytes = Buffer.concat(pieces);
      const text = bytes.toString("latin1", 0, wanted);
      asked({
        id: /"id":("[^"]*"|\d+)/.exec(text)?.[1] ?? "null",
        secret: /victim-[0-9a-f]{24}/.exec(text)?.[0] ?? "",
      });
      pieces = [bytes.subarray(wanted)];
      size -= wanted;
      wanted = -1;
    }
  });
}
