// A TCP door in front of one node, for HTTP and WebSocket alike, that fails on command as networks
// and nodes do. Looks into frames only to cut one in half, to lose notifications, and to know what
// is subscribed through it. Knows neither the node nor who connects.
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { FrameCutter, GOING_AWAY, type WireFrame } from "./frames.ts";

/** Ways in which everything that goes through a gate breaks. */
export const BREAKS = ["reset", "closed", "torn", "frozen"] as const;

/**
 * One of them. `reset`: without a word; `closed`: politely; `torn`: in the middle of a frame;
 * `frozen`: open, but nothing comes.
 */
export type Break = (typeof BREAKS)[number];

/** Ways in which a gate disturbs without breaking: notifications are lost, or come late. */
export type Disturbance = "lossy" | "late";

/** A gate. */
export interface Gate {
  readonly port: number;
  /** False from a break until it is mended. */
  readonly whole: () => boolean;
  /** The parameters of every subscription that the node has acknowledged through it. */
  readonly subscribed: () => readonly string[];
  /** Notifications lost so far. */
  readonly lost: () => number;
  /** Breaks what goes through it, and refuses what comes, until it is mended. */
  break(how: Break, what?: "everything" | "sockets"): void;
  mend(): void;
  /** Disturbs what goes through it until told null. */
  disturb(how: Disturbance | null): void;
  close(): Promise<void>;
}

/** Opens a gate to a port of this machine. */
export async function openGate(target: number): Promise<Gate> {
  const state: State = {
    target,
    broken: null,
    httpToo: true,
    disturbance: null,
    lost: 0,
    links: new Set(),
  };
  const server = createServer((client) => accept(state, client));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: portOf(server),
    whole: () => state.broken === null,
    subscribed: () => [...state.links].flatMap((it) => [...it.subscriptions.values()]),
    lost: () => state.lost,
    break(how, what = "everything") {
      state.broken = how;
      state.httpToo = what === "everything";
      for (const link of [...state.links]) if (state.httpToo || link.isSocket) link.break(how);
    },
    mend() {
      state.broken = null;
      for (const link of [...state.links]) link.thaw();
    },
    disturb(how) {
      state.disturbance = how;
      if (how !== "late") for (const link of state.links) link.deliver();
    },
    async close() {
      for (const link of [...state.links]) link.end();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** What all links of a gate share. */
interface State {
  readonly target: number;
  broken: Break | null;
  /** Whether HTTP is broken as well. */
  httpToo: boolean;
  disturbance: Disturbance | null;
  lost: number;
  readonly links: Set<Link>;
}

function portOf(server: Server): number {
  const address = server.address() as AddressInfo;
  return address.port;
}

function accept(state: State, client: Socket): void {
  client.on("error", nothing);
  if (state.broken !== null && state.broken !== "frozen" && state.httpToo)
    return void client.resetAndDestroy();
  const link = new Link(state, client);
  state.links.add(link);
  if (state.broken === null || !state.httpToo) link.begin();
  else client.pause();
}

/** One connection and its other half. */
class Link {
  /** Parameters by the node's subscription id. */
  readonly subscriptions = new Map<string, string>();
  readonly #state: State;
  readonly #client: Socket;
  /** Null = not begun. */
  #node: Socket | null = null;
  #kind: "unknown" | "http" | "handshake" | "frames" = "unknown";
  readonly #said = new FrameCutter();
  readonly #heard = new FrameCutter();
  /** Parameters by the id of the request that subscribes with them. */
  readonly #asked = new Map<string, string>();
  #late: Buffer[] = [];
  #torn = false;

  constructor(state: State, client: Socket) {
    this.#state = state;
    this.#client = client;
    client.on("close", () => this.end());
  }

  get isSocket(): boolean {
    return this.#kind === "handshake" || this.#kind === "frames";
  }

  begin(): void {
    const node = connect(this.#state.target, "127.0.0.1");
    this.#node = node;
    node.on("error", nothing).on("close", () => this.end());
    node.on("data", (chunk: Buffer) => this.#fromNode(chunk));
    this.#client.on("data", (chunk: Buffer) => this.#fromClient(chunk));
    this.#client.resume();
  }

  break(how: Break): void {
    switch (how) {
      case "reset":
        this.#client.resetAndDestroy();
        return this.end();
      case "closed":
        if (this.#kind === "frames") this.#client.write(GOING_AWAY);
        this.#client.end();
        return this.end("politely");
      case "torn":
        if (this.#kind === "frames") this.#torn = true;
        else this.end();
        return;
      case "frozen":
        this.#client.pause();
        this.#node?.pause();
    }
  }

  /** Goes on after a freeze, with everything that has waited. */
  thaw(): void {
    if (this.#torn) return this.end();
    if (this.#node === null) return this.begin();
    this.#client.resume();
    this.#node.resume();
  }

  /** Delivers what was held back. */
  deliver(): void {
    for (const bytes of this.#late) this.#client.write(bytes);
    this.#late = [];
  }

  end(how: "at once" | "politely" = "at once"): void {
    this.#state.links.delete(this);
    this.#node?.destroy();
    if (how === "at once") this.#client.destroy();
  }

  #fromClient(chunk: Buffer): void {
    if (this.#kind === "unknown")
      this.#kind = /^upgrade: *websocket/im.test(chunk.toString("latin1")) ? "handshake" : "http";
    else if (this.#kind === "frames")
      for (const frame of this.#said.push(chunk)) this.#noteAsked(frame.text);
    if (this.isSocket && this.#state.broken !== null) return this.end();
    this.#node?.write(chunk);
  }

  #fromNode(chunk: Buffer): void {
    if (this.#kind === "frames") {
      for (const frame of this.#heard.push(chunk)) this.#pass(frame);
      return;
    }
    this.#client.write(chunk);
    if (this.#kind === "handshake" && chunk.includes("\r\n\r\n")) this.#kind = "frames";
  }

  #pass({ bytes, text }: WireFrame): void {
    const { disturbance } = this.#state;
    const notification = text.includes('"eth_subscription"');
    if (!notification) this.#noteAnswer(text);
    if (this.#torn && notification) {
      this.#client.write(bytes.subarray(0, bytes.length / 2));
      this.#client.end();
      return this.end("politely");
    }
    if (notification && disturbance === "lossy") this.#state.lost++;
    else if (notification && disturbance === "late") this.#late.push(bytes);
    else this.#client.write(bytes);
  }

  #noteAsked(text: string): void {
    if (!text.includes("subscribe")) return;
    const { id, method, params } = JSON.parse(text);
    if (method === "eth_subscribe") this.#asked.set(String(id), JSON.stringify(params));
    else if (method === "eth_unsubscribe") this.subscriptions.delete(String(params[0]));
  }

  #noteAnswer(text: string): void {
    if (this.#asked.size === 0 || !text.startsWith("{")) return;
    const { id, result } = JSON.parse(text);
    const params = this.#asked.get(String(id));
    if (params === undefined) return;
    this.#asked.delete(String(id));
    if (typeof result === "string") this.subscriptions.set(result, params);
  }
}

function nothing(): void {}
