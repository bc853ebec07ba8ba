// The clients of the socket benchmark, a process of its own: thousands of bare connections that
// implement just enough of WebSocket to subscribe, count notifications, and send calls in closed
// loops. Answers each message once.
import { connect, type Socket } from "node:net";
import { isRecord } from "../child.ts";
import { expectedAnswer, FIRST_NUMBER, requestBody } from "../workload.ts";

/** Opens connections; `subscribe` = each subscribes to new heads. */
interface OpenOrder {
  readonly port: number;
  readonly path: string;
  readonly connections: number;
  readonly subscribe: boolean;
}

/**
 * Waits until every connection has received this many notifications since the last `mark`; answers
 * with the total number and the number of wrong ones.
 */
interface AwaitOrder {
  readonly each: number;
}

/** Sends calls in closed loops on all connections. */
interface AskOrder {
  readonly seconds: number;
}

const OPENING_AT_ONCE = 64;
const WAIT_MS = 30_000;
const MASK = Buffer.from([0, 0, 0, 0]);
const NOTIFICATION = '{"jsonrpc":"2.0","method":"eth_subscription"';

class Client {
  readonly #socket: Socket;
  readonly ready: Promise<void>;
  readonly #answered: (client: Client, payload: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);
  #open = false;
  notifications = 0;
  wrong = 0;
  /** Number of the request under way. */
  asked = 0;
  #lastNumber = 0;
  #resolve: () => void = () => {};

  constructor(
    { port, path, subscribe }: OpenOrder,
    answered: (client: Client, payload: Buffer) => void,
  ) {
    this.#answered = answered;
    this.ready = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.#socket.on("data", (chunk) => this.#data(chunk, subscribe));
    this.#socket.on("error", () => {});
    this.#socket.write(
      `GET ${path} HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: ` +
        `Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ` +
        `AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    );
  }

  /**
   * Sends a text frame masked with zeros; ASCII only, in one write, like the generator of HTTP
   * calls.
   */
  send(text: string): void {
    const { length } = text;
    const head =
      length < 126
        ? String.fromCharCode(0x81, 0x80 | length)
        : String.fromCharCode(0x81, 0xfe, length >> 8, length & 255);
    this.#socket.write(`${head}\0\0\0\0${text}`, "latin1");
  }

  close(): void {
    this.#socket.destroy();
  }

  #data(chunk: Buffer, subscribe: boolean): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (!this.#open) {
      const end = this.#rest.indexOf("\r\n\r\n");
      if (end === -1) return;
      this.#open = true;
      this.#rest = this.#rest.subarray(end + 4);
      if (subscribe)
        this.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}');
      else this.#resolve();
    }
    this.#frames();
  }

  #frames(): void {
    for (let bytes = this.#rest; ; bytes = this.#rest) {
      if (bytes.length < 2) return;
      const short = (bytes[1] ?? 0) & 127;
      const start = FRAME_START[short] ?? 2;
      if (bytes.length < start) return;
      const length = payloadLength(bytes, short);
      if (bytes.length < start + length) return;
      this.#rest = bytes.subarray(start + length);
      const opcode = (bytes[0] ?? 0) & 15;
      if (opcode === 1) this.#message(bytes.subarray(start, start + length));
      else if (opcode === 9)
        this.#socket.write(
          Buffer.concat([
            Buffer.from([0x8a, 0x80 | length]),
            MASK,
            bytes.subarray(start, start + length),
          ]),
        );
    }
  }

  #message(payload: Buffer): void {
    if (payload.toString("latin1", 0, NOTIFICATION.length) !== NOTIFICATION) {
      this.#resolve();
      return this.#answered(this, payload);
    }
    this.notifications++;
    const text = payload.toString("latin1");
    const number = Number(/"number":"(0x[0-9a-f]+)"/.exec(text)?.[1]);
    if (this.#lastNumber !== 0 && number !== this.#lastNumber + 1) this.wrong++;
    if (!text.endsWith('"}}}')) this.wrong++;
    this.#lastNumber = number;
  }
}

let clients: Client[] = [];
let asking = false;
let marked = new Map<Client, number>();
let asked = FIRST_NUMBER;
let inFlight = 0;
let ok = 0;
let wrong = 0;

process.on("message", (message) => {
  if (!isRecord(message)) return;
  if (message["kind"] === "open") void open(message as unknown as OpenOrder);
  else if (message["kind"] === "mark") mark();
  else if (message["kind"] === "await") void awaitAll(message as unknown as AwaitOrder);
  else if (message["kind"] === "ask") void ask(message as unknown as AskOrder);
  else if (message["kind"] === "close") closeAll();
});

async function open(order: OpenOrder): Promise<void> {
  closeClients();
  for (let n = 0; n < order.connections; n += OPENING_AT_ONCE) {
    const some = Array.from(
      { length: Math.min(OPENING_AT_ONCE, order.connections - n) },
      () => new Client(order, answered),
    );
    clients.push(...some);
    await Promise.all(some.map((client) => client.ready));
  }
  process.send?.({ open: clients.length });
}

function mark(): void {
  marked = new Map(clients.map((client) => [client, client.notifications]));
  process.send?.({ marked: marked.size });
}

async function awaitAll({ each }: AwaitOrder): Promise<void> {
  const since = (client: Client): number => client.notifications - (marked.get(client) ?? 0);
  for (
    const deadline = performance.now() + WAIT_MS;
    performance.now() < deadline;
    await new Promise((resolve) => setTimeout(resolve, 20))
  ) {
    if (clients.every((client) => since(client) >= each)) break;
  }
  process.send?.({
    delivered: clients.reduce((sum, client) => sum + since(client), 0),
    wrong: clients.reduce((sum, client) => sum + client.wrong, 0),
  });
}

async function ask({ seconds }: AskOrder): Promise<void> {
  asking = true;
  ok = 0;
  wrong = 0;
  for (const client of clients) next(client);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  asking = false;
  for (const deadline = performance.now() + WAIT_MS; inFlight > 0 && performance.now() < deadline; )
    await new Promise((resolve) => setTimeout(resolve, 1));
  process.send?.({ ok, wrong: wrong + inFlight });
}

function next(client: Client): void {
  inFlight++;
  client.asked = asked++;
  client.send(requestBody("small", client.asked));
}

function answered(client: Client, payload: Buffer): void {
  if (inFlight === 0) return;
  inFlight--;
  if (payload.toString("latin1") === expectedAnswer("small", client.asked)) ok++;
  else wrong++;
  if (asking) next(client);
}

function closeAll(): void {
  closeClients();
  process.send?.({ closed: true });
}

function closeClients(): void {
  for (const client of clients) client.close();
  clients = [];
}

/** Offset of the payload in a server's frame, by the 7-bit length; 2 for all others. */
const FRAME_START: Readonly<Record<number, number>> = { 126: 4, 127: 10 };

function payloadLength(bytes: Buffer, short: number): number {
  if (short === 126) return bytes.readUInt16BE(2);
  return short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
}
