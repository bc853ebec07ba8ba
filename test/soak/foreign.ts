// Callers of a provider that answers more, less or something else than it was asked: each waits for
// its own secret, and none may ever see a byte of anything else. Through the real HTTP transport
// and the real rendering, so that what is judged is what a caller would read.
import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates, type TlsOptions } from "node:tls";
import type { Provider } from "../../src/core/provider/profile.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import { realRuntime } from "../../src/runtime.ts";
import { HTTP_LIMITS, HttpUpstream } from "../../src/upstream/http/http-upstream.ts";
import { MemoryBudget } from "../../src/upstream/memory-budget.ts";
import { SsrfGuard } from "../../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { AnswerListener, Upstream } from "../../src/upstream/transport.ts";
import { renderResult, renderStreamHead } from "../../src/web/rpc/answers/render-reply.ts";
import { fakeProvider } from "../fakes/providers.ts";
import { between, pick } from "./chance.ts";
import { resultFor, type Shape, STRANGER, startHostileProvider } from "./hostile-answers.ts";

/** The identity of a provider behind TLS; from here on this process trusts it. */
export function trustedIdentity(): TlsOptions {
  const read = (name: string): string =>
    readFileSync(new URL(`../data/tls/${name}`, import.meta.url), "utf8");
  const cert = read("certificate.pem");
  setDefaultCACertificates([...getCACertificates("default"), cert]);
  return { key: read("key.pem"), cert };
}

/** How a provider is reached. */
export interface Way {
  readonly name: string;
  readonly client: "own" | "undici";
  /** The identity of the provider; null = plain text. */
  readonly tls: TlsOptions | null;
}

/** The ways on which answers are read by different code; of undici's, the one over TLS. */
export function waysOf(tls: TlsOptions): readonly Way[] {
  return [
    { name: "by our own client", client: "own", tls: null },
    { name: "by our own client over TLS", client: "own", tls },
    { name: "by undici over TLS", client: "undici", tls },
  ];
}

/** One attack. */
export interface Attack {
  readonly shape: Shape;
  readonly way: Way;
  readonly calls: number;
  readonly connections: number;
  readonly random: () => number;
}

/** What became of the calls of one attack. */
export interface Damage {
  /** Answers that arrived whole, as they should be. */
  own: number;
  /** Calls that failed, were cut off or were given up: nobody is told anything wrong. */
  failed: number;
  /** Requests that were answered in the manner of the shape. */
  played: number;
  /** What callers read that was not theirs; the first few. */
  readonly foreign: string[];
}

/** A call that nobody answers is given up. */
const PATIENCE_MS = 400;
const CANCELLED_SHARE = 0.02;
const LARGE_CHARS = 3_000_000;
const SHOWN = 5;
const CALLER_IDS = ["1", "1", "1", "7", '"1"', '"a-long-id-of-a-caller"', "null"];

/** Lets a number of callers call side by side until all calls are made. */
export async function attack({ shape, way, calls, connections, random }: Attack): Promise<Damage> {
  const { client, tls } = way;
  const damage: Damage = { own: 0, failed: 0, played: 0, foreign: [] };
  const server = await startHostileProvider(shape, random, tls);
  const limits = { ...HTTP_LIMITS, connectionsPerOrigin: connections };
  const upstream = new HttpUpstream(realRuntime, limits, new SsrfGuard(), {
    budget: MemoryBudget.unbounded(),
    timerWheel: new TimerWheel(realRuntime),
    client,
  });
  const provider = fakeProvider(0, {
    url: `${tls === null ? "http" : "https"}://127.0.0.1:${server.port}/`,
  });
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < calls) {
      const secret = `victim-${String(begun++).padStart(12, "0")}${Math.floor(random() * 2 ** 44)
        .toString(16)
        .padStart(12, "0")
        .slice(-12)}`;
      const id = pick(random, CALLER_IDS);
      const isLarge = random() < (shape.largeShare ?? 0);
      const read = await call({ upstream, provider, secret, id, isLarge, random });
      judge(
        damage,
        read,
        secret,
        `{"jsonrpc":"2.0","id":${id},"result":${resultFor(secret, shape.long === true)}}`,
      );
    }
  };
  try {
    // One more than there are connections: one call always waits for the next one that is free.
    await Promise.all(Array.from({ length: connections + 1 }, worker));
  } finally {
    await upstream.close();
    damage.played = server.played();
    await server.close();
  }
  return damage;
}

interface Call {
  readonly upstream: Upstream;
  readonly provider: Provider;
  readonly secret: string;
  readonly id: string;
  readonly isLarge: boolean;
  readonly random: () => number;
}

/** What a caller has read; `ended` = it has been told that this is all. */
interface Read {
  readonly text: string;
  readonly ended: boolean;
}

function call({ upstream, provider, secret, id, isLarge, random }: Call): Promise<Read> {
  return new Promise((resolve) => {
    let text = "";
    const end = (ended: boolean): void => {
      clearTimeout(patience);
      clearTimeout(leaving);
      resolve({ text, ended });
    };
    const give = (bytes: Buffer): void => {
      text += bytes.toString("utf8");
    };
    const listener: AnswerListener = {
      result(body, span, pool) {
        for (const piece of renderResult(body, span, id)) give(piece);
        pool?.recycle(body);
        end(true);
      },
      stream(stream) {
        give(renderStreamHead(Buffer.from(id), stream));
        stream.flow({
          data(chunk) {
            give(chunk);
            return true;
          },
          end(last, _, lent) {
            give(last);
            if (lent) stream.recycle(last);
            end(true);
            return false;
          },
          broken: () => end(false),
        });
      },
      broken() {},
      failed(_, raw) {
        if (raw !== null) give(raw);
        end(raw !== null);
      },
    };
    const giveUp = (): void => {
      dispatch.cancel();
      end(false);
    };
    const patience = setTimeout(giveUp, PATIENCE_MS);
    const leaving =
      random() < CANCELLED_SHARE ? setTimeout(giveUp, between(random, 0, 5)) : undefined;
    const padding = isLarge ? `,"${"x".repeat(LARGE_CHARS)}"` : "";
    const request = writeRequest("eth_call", Buffer.from(`["${secret}"${padding}]`));
    const dispatch = upstream.send({ provider, ...request, mayStream: random() < 0.8 }, listener);
  });
}

function judge(damage: Damage, { text, ended }: Read, secret: string, expected: string): void {
  const marks: readonly string[] = text.match(/victim-[0-9a-f]{24}|stranger/g) ?? [];
  const isForeign =
    marks.some((it) => it !== secret) ||
    text.includes(STRANGER) ||
    (ended && text !== expected) ||
    !expected.startsWith(text);
  if (isForeign && damage.foreign.length < SHOWN)
    damage.foreign.push(`${secret} read ${text.slice(0, 300)}`);
  if (isForeign) return;
  if (ended) damage.own++;
  else damage.failed++;
}
