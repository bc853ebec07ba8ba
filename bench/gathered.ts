// `npm run bench -- --gathered`: measures the memory of gathered answers: batches with long
// answers, all at once, compared with the same calls sent one by one, which are streamed; for
// configured providers and for a user-supplied one, over HTTP and WebSocket. Exit code as in
// `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRecord, startChild } from "./child.ts";
import { snapshot } from "./measure.ts";
import { memoryMb, resetPeak } from "./procfs.ts";
import { PATHS, type Site, type System, serviceConfig, startServiceWith } from "./systems.ts";
import { FIRST_NUMBER, requestBody } from "./workload.ts";

const ANSWER_BYTES = 60_000_000;
/** Answers of user-supplied providers are gathered up to 32 MiB. */
const OWN_BYTES = 30_000_000;
const BATCHES = 10;
const ITEMS = 4;
/** Largest allowed growth over the memory before, MB. */
const MOST_GROWTH_MB = 400;
const ANSWER_TIMEOUT_MS = 5_000;
const OPERATOR_TOKEN = "operator-of-the-benchmark-0123456789";

/** Providers behind one URL, and the expected behaviour. */
interface Kind {
  readonly name: string;
  readonly url: string;
  /** Length of an answer in a batch, and of an answer to a single call. */
  readonly bytes: number;
  readonly singleBytes: number;
  /** True = single calls are streamed, so all of them must be answered. */
  readonly streams: boolean;
}

/** Runs the measurement; resolves with the exit code. */
export async function measureGathered(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const [upstream, provider] = [
      startChild("upstream.ts", []),
      startChild("socket-provider.ts", []),
    ];
    stops.push(upstream.stop, provider.stop);
    const site: Site = { dir, upstreamPorts: (await snapshot(upstream)).ports, nodeFlags: [] };
    const told = await provider.ask({}, ANSWER_TIMEOUT_MS);
    const socketPort = isRecord(told) ? Number(told["port"]) : 0;
    const missed: string[] = [];
    for (const own of [null, "http", "socket"] as const) {
      const config =
        `${serviceConfig(site)}hosted: { enabled: true, keyless: true, allow_private_providers: ` +
        `true, operator_token: ${OPERATOR_TOKEN} }\n`;
      const system = await startServiceWith(site, config);
      try {
        const url =
          own === null
            ? `http://127.0.0.1:${system.port}${PATHS.live}`
            : await ownUrl(system, own, own === "http" ? (site.upstreamPorts[0] ?? 0) : socketPort);
        const name =
          own === null
            ? "configured providers"
            : `a user's own provider, ${own === "http" ? "over HTTP" : "by its socket"}`;
        missed.push(
          ...(await run(system, {
            name,
            url,
            bytes: own === null ? ANSWER_BYTES : OWN_BYTES,
            singleBytes: own === "socket" ? OWN_BYTES : ANSWER_BYTES,
            streams: own !== "socket",
          })),
        );
      } finally {
        await system.stop();
      }
    }
    process.stdout.write(
      missed.length === 0
        ? "Within its targets.\n"
        : `${missed.map((target) => `MISSED ${target}`).join("\n")}\n`,
    );
    return missed.length === 0 ? 0 : 1;
  } finally {
    for (const stop of stops.toReversed()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Creates an account with a Custom profile and a key; returns the URL for its calls. */
async function ownUrl(
  { port }: System,
  own: "http" | "socket",
  providerPort: number,
): Promise<string> {
  const base = `http://127.0.0.1:${port}`;
  const ask = async (
    token: string,
    method: string,
    path: string,
    body: unknown,
  ): Promise<Readonly<Record<string, unknown>>> => {
    const headers = {
      "content-type": "application/json",
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
    };
    const response = await fetch(base + path, { method, headers, body: JSON.stringify(body) });
    const json: unknown = await response.json();
    if (!response.ok || !isRecord(json))
      throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(json)}`);
    return json;
  };
  const account = await ask("", "POST", "/api/v1/keys", { name: "bench" });
  await ask(
    OPERATOR_TOKEN,
    "POST",
    `/api/v1/operator/accounts/${String(account["account_id"])}/custom-access`,
    { days: 1 },
  );
  const address =
    own === "http"
      ? { url: `http://127.0.0.1:${providerPort}` }
      : { ws_url: `ws://127.0.0.1:${providerPort}` };
  const document = { chains: { bench: { providers: [{ name: "mine", ...address }] } } };
  await ask(String(account["management_token"]), "PUT", "/api/v1/profiles/mine", document);
  return `${base}/rpc/profile/mine/bench?key=${String(account["key"])}`;
}

/** Runs one kind; returns the missed targets. */
async function run(
  system: System,
  { name, url, bytes, singleBytes, streams }: Kind,
): Promise<readonly string[]> {
  const [pid = 0] = system.pids;
  const callOf = (at: number, size: number): string =>
    requestBody("sized", FIRST_NUMBER + at, { bytes: size, chunked: at % 2 === 1 });
  const calls = Array.from({ length: ITEMS }, (_, at) => callOf(at, bytes));
  const answers = (bodies: readonly string[], size = bytes) =>
    Promise.all(bodies.map((body) => answersIn(url, { body, bytes: size })));
  const startMb = memoryMb(pid).rss;
  resetPeak(pid);
  const batches = await answers(Array.from({ length: BATCHES }, () => `[${calls.join(",")}]`));
  const gatheredMb = memoryMb(pid).peak;
  const [whole, refused] = [
    batches.reduce((sum, batch) => sum + batch.whole, 0),
    batches.reduce((sum, batch) => sum + batch.refused, 0),
  ];
  resetPeak(pid);
  const bodies = Array.from({ length: BATCHES }, (_, at) => callOf(at, singleBytes));
  const single = (await answers(bodies, singleBytes)).filter((answer) => answer.whole === 1).length;
  const singleMb = memoryMb(pid).peak;
  const [alone] = await answers([`[${calls[0]}]`]);
  process.stdout.write(`${name}
  ${BATCHES} batches of ${ITEMS} answers of ${bytes / 1e6} MB: ${whole} answered, ${refused} refused; one in a batch alone: ${alone?.whole} answered
  ${BATCHES} single calls for ${singleBytes / 1e6} MB: ${single} answered
  resident: ${startMb.toFixed(0)} MB before, ${gatheredMb.toFixed(0)} MB at most with batches, ${singleMb.toFixed(0)} MB with single calls\n`);
  const grownMb = Math.max(gatheredMb, singleMb) - startMb;
  return [
    ...(grownMb > MOST_GROWTH_MB
      ? [`${name}: grew by ${grownMb.toFixed(0)} MB, at most ${MOST_GROWTH_MB}`]
      : []),
    ...(whole + refused === BATCHES * ITEMS
      ? []
      : [`${name}: an item has neither an answer nor a refusal`]),
    ...(alone?.whole === 1 ? [] : [`${name}: an answer that is gathered alone was refused`]),
    ...(streams && single !== BATCHES ? [`${name}: a single call was not answered`] : []),
  ];
}

/** Reads an answer without storing it; long results are counted by their bytes. */
async function answersIn(
  url: string,
  { body, bytes: answerBytes }: { readonly body: string; readonly bytes: number },
): Promise<{ readonly whole: number; readonly refused: number }> {
  const response = await fetch(url, { method: "POST", body });
  let bytes = 0;
  let refused = 0;
  for await (const piece of response.body ?? []) {
    if (!(piece instanceof Uint8Array)) continue;
    bytes += piece.length;
    refused += Buffer.from(piece).toString("latin1").split('"error":{').length - 1;
  }
  return { whole: Math.floor(bytes / answerBytes), refused };
}
