// The same conversations against the four combinations of the service's HTTP implementations (fast
// path or node's server, own client or undici) before the same providers: what comes back must be
// the same, byte for byte, but for what `comparable` leaves out.
import { openRawClient, type RawClient, type WireAnswer } from "../fakes/raw-client.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { type Replier, type Script, scriptedUpstream } from "../fakes/upstream.ts";
import { type Conversation, conversation } from "./odd-requests.ts";

/** How the service speaks HTTP on both of its sides. */
interface Combination {
  readonly name: string;
  readonly fastPath: "auto" | "off";
  readonly client: "own" | "undici";
}

/** The first is what the others are compared with. */
const COMBINATIONS: readonly Combination[] = [
  { name: "node + undici", fastPath: "off", client: "undici" },
  { name: "node + own client", fastPath: "off", client: "own" },
  { name: "fast path + undici", fastPath: "auto", client: "undici" },
  { name: "fast path + own client", fastPath: "auto", client: "own" },
];

/** What a run has found. */
export interface DifferentialResult {
  readonly conversations: number;
  readonly answers: number;
  /** By status line. */
  readonly statuses: ReadonlyMap<string, number>;
  readonly differences: readonly string[];
}

/** Stops after so many: they are likely one. */
const MAX_DIFFERENCES = 10;
/** An answer that does not come within this never comes. */
const PATIENCE_MS = 60_000;
const EXCERPT_CHARS = 600;

/** Has so many conversations with each combination, and compares what comes back. */
export async function compareCombinations(
  random: () => number,
  conversations: number,
): Promise<DifferentialResult> {
  const upstreams = [await scriptedUpstream(provider("a")), await scriptedUpstream(provider("b"))];
  const providers = upstreams.map(({ url }, n) => ({
    id: n === 0 ? "a" : "b",
    url,
    priority: n + 1,
  }));
  const services = await Promise.all(
    COMBINATIONS.map(({ fastPath, client }) =>
      startService(
        configText(providers, {
          server: { port: 0, fast_path: fastPath },
          upstream: { http: client },
          log_level: "warn",
        }),
      ),
    ),
  );
  try {
    await Promise.all(services.map((service) => service.probed()));
    return await compareAll(services, random, conversations);
  } finally {
    await Promise.all(services.map((service) => service.close()));
    await Promise.all(upstreams.map((upstream) => upstream.close()));
  }
}

async function compareAll(
  services: readonly Service[],
  random: () => number,
  conversations: number,
): Promise<DifferentialResult> {
  const differences: string[] = [];
  const statuses = new Map<string, number>();
  let answers = 0;
  let done = 0;
  while (done < conversations && differences.length < MAX_DIFFERENCES) {
    const said = conversation(random);
    done++;
    const heard = await Promise.all(services.map((service) => hold(service, said)));
    const expected = JSON.stringify(heard[0]);
    for (const [n, other] of heard.entries()) {
      if (JSON.stringify(other) === expected && other.end !== "silent") continue;
      differences.push(difference(said, n, [heard[0], other]));
    }
    for (const { status } of heard[0]?.answers ?? []) {
      answers++;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  }
  for (const [n, service] of services.entries())
    if (!(await isAtRest(service))) differences.push(`${nameOf(n)}: bytes are held for nobody`);
  return { conversations: done, answers, statuses, differences };
}

function nameOf(n: number): string {
  return COMBINATIONS[n]?.name ?? "";
}

/** What one combination has made of a conversation. */
interface Heard {
  readonly answers: readonly Comparable[];
  /** How the connection stood then. */
  readonly end: "open" | "closed" | "silent";
}

/** What must be the same. */
interface Comparable {
  readonly status: string;
  readonly lines: readonly string[];
  readonly body: string;
}

/** Has one conversation. */
async function hold(service: Service, said: Conversation): Promise<Heard> {
  const cleanups: (() => void)[] = [];
  const client = await openRawClient({ after: (run) => cleanups.push(run) }, service.port);
  try {
    const answers: Comparable[] = [];
    for (const [n, bytes] of said.writes.entries()) {
      if (n === said.writes.length - 1)
        answers.push(...(await listen(client, said.awaited)).answers);
      await new Promise<void>((resolve) => client.socket.write(bytes, () => resolve()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (said.ending === "leaves") return { answers, end: "open" };
    if (said.ending === "half_closes") client.socket.end();
    const most = said.ending === "half_closes" ? Infinity : said.requests - said.awaited;
    const { answers: more, end } = await listen(client, most);
    return { answers: [...answers, ...more], end };
  } finally {
    for (const cleanup of cleanups) cleanup();
  }
}

/** Takes so many answers, or as many as come before the connection ends. */
async function listen(client: RawClient, most: number): Promise<Heard> {
  const answers: Comparable[] = [];
  let finals = 0;
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<"silent">((resolve) => {
    timer = setTimeout(() => resolve("silent"), PATIENCE_MS);
  });
  try {
    while (finals < most) {
      const answer = await Promise.race([client.answerOrEnd(), patience]);
      if (answer === "silent") return { answers, end: "silent" };
      if (answer === null) return { answers, end: "closed" };
      answers.push(comparable(answer));
      if (!/^HTTP\/1\.1 1\d\d/.test(answer.status)) finals++;
    }
    return { answers, end: "open" };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Left out: `Date`; ids of requests; the order of the header lines; and how a long answer of
 * unknown length is framed, which depends on how its pieces arrive.
 */
function comparable({ status, lines, body }: WireAnswer): Comparable {
  const isLong = body.length > MAX_WHOLE_BYTES;
  const kept = lines
    .filter((line) => !/^(?:date|x-svc-request-id):/i.test(line))
    .filter((line) => !isLong || !/^(?:content-length|transfer-encoding):/i.test(line))
    .map((line) => line.toLowerCase())
    .sort();
  return { status, lines: kept, body: body.toString("latin1").replaceAll(REQUEST_ID, "req-") };
}

/** Answers up to this size are held whole. */
const MAX_WHOLE_BYTES = 65_000;
const REQUEST_ID = /req-[0-9a-z]+-[0-9a-z]+/g;

function difference(
  { name, writes, ending }: Conversation,
  n: number,
  [expected, heard]: readonly [Heard | undefined, Heard],
): string {
  const sent = writes.map((bytes) => JSON.stringify(bytes.toString("latin1", 0, EXCERPT_CHARS)));
  const [one, other] = [JSON.stringify(expected), JSON.stringify(heard)];
  const place = [...one].findIndex((character, at) => character !== other[at]);
  const from = Math.max(0, place - EXCERPT_CHARS / 2);
  const shown = (text: string): string => text.slice(from, from + EXCERPT_CHARS);
  return [
    `${name.slice(0, EXCERPT_CHARS)} (${ending})`,
    ...sent.map((text) => `  sent ${text}`),
    `  ${nameOf(0)}: ${shown(one)}`,
    `  ${nameOf(n)}: ${shown(other)}`,
  ].join("\n");
}

/** Whether no bytes of requests are counted any more, within a while. */
async function isAtRest(service: Service): Promise<boolean> {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    const { text } = await service.get("/metrics");
    if (/^svc_in_flight_bytes 0$/m.test(text)) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

/** A provider that answers as the parameters of the call say. */
function provider(name: "a" | "b"): Script {
  return ({ id, method, params }, reply) => {
    // Nobody waits for this one: its caller has ended its side.
    if (method === "eth_getProof") return;
    const [said] = Array.isArray(params) ? params : [];
    const { shape = "counted", bytes = 0 } = said ?? {};
    const fail = name === "a" ? FAILURES[shape] : undefined;
    const answer = fail ?? ANSWERS[shape] ?? counted;
    const digits = "0123456789abcdef".repeat(bytes / 16 + 1).slice(2, bytes);
    answer(reply, { id, value: `"0x${digits}"` });
  };
}

interface Asked {
  readonly id: string;
  /** A result of the size that was asked for, as JSON. */
  readonly value: string;
}

type AnswerShape = (reply: Replier, asked: Asked) => void;

const counted: AnswerShape = (reply, { value }) => reply.result(value);

function bodyOf({ id, value }: Asked): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${value}}`;
}

const ANSWERS: Readonly<Record<string, AnswerShape>> = {
  chunked: (reply, asked) => reply.begin(bodyOf(asked)).end(),
  pieces(reply, asked) {
    const text = bodyOf(asked);
    const third = Math.ceil(text.length / 3);
    const rest = reply.begin(text.slice(0, third));
    setImmediate(() => {
      rest.write(text.slice(third, 2 * third));
      setImmediate(() => {
        rest.write(text.slice(2 * third));
        rest.end();
      });
    });
  },
  until_close(reply, asked) {
    reply.raw(`HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n${bodyOf(asked)}`);
    reply.close();
  },
  id_last: (reply, { id, value }) => reply.body(`{"result":${value},"jsonrpc":"2.0","id":${id}}`),
  spaced: (reply, { id, value }) =>
    reply.body(` {\n "jsonrpc" : "2.0", "id" : ${id} ,\t"result" : ${value} }\n`),
  // Its length is announced: an answer of unknown length that does not end with its result is whole
  // or broken off, depending on how its bytes arrive.
  members(reply, { id, value }) {
    const text = `{"jsonrpc":"2.0","id":${id},"result":${value},"more":{"a":[1]}}`;
    reply.body(text, 200, { "content-length": String(Buffer.byteLength(text)) });
  },
  error: (reply) => reply.error('{"code":3,"message":"execution reverted","data":"0x08c379a0"}'),
  data_error: (reply, { value }) =>
    reply.error(`{"code":3,"message":"execution reverted","data":${value}}`),
};

const FAILURES: Readonly<Record<string, AnswerShape>> = {
  status_500: (reply) => reply.body("oops", 500),
  status_429: (reply) => reply.body("{}", 429, { "retry-after": "1" }),
  reset: (reply) => reply.reset(),
  no_json: (reply) => reply.body("<html>", 200),
  other_id: (reply) => reply.body('{"jsonrpc":"2.0","id":1,"result":"0x1"}'),
};
