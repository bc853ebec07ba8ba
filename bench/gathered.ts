// `npm run bench -- --gathered`: how much memory answers take that are gathered: batches of long ones, all at once, and the same calls one by one, which
// are passed on. Exit code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild } from "./child.ts";
import { snapshot } from "./measure.ts";
import { memoryMb, resetPeak } from "./procfs.ts";
import { PATHS, type System, startSystem } from "./systems.ts";
import { FIRST_NUMBER, requestBody } from "./workload.ts";

const ANSWER_BYTES = 60_000_000;
const BATCHES = 10;
const ITEMS = 4;
/** Beyond what the process held before, MB. */
const MOST_GROWTH_MB = 400;

/** Runs it; resolves with the exit code. */
export async function measureGathered(): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const upstream = startChild("upstream.ts", []);
  try {
    const system = await startSystem("svc", { dir, upstreamPorts: (await snapshot(upstream)).ports, nodeFlags: [] });
    try {
      return await run(system);
    } finally {
      await system.stop();
    }
  } finally {
    await upstream.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function run(system: System): Promise<number> {
  const url = `http://127.0.0.1:${system.port}${PATHS.live}`;
  const [pid = 0] = system.pids;
  const calls = Array.from({ length: ITEMS }, (_, at) => requestBody("sized", FIRST_NUMBER + at, { bytes: ANSWER_BYTES, chunked: at % 2 === 1 }));
  const startMb = memoryMb(pid).rss;
  resetPeak(pid);
  const batches = await Promise.all(Array.from({ length: BATCHES }, () => answersIn(url, `[${calls.join(",")}]`)));
  const gatheredMb = memoryMb(pid).peak;
  const [whole, refused] = [batches.reduce((sum, it) => sum + it.whole, 0), batches.reduce((sum, it) => sum + it.refused, 0)];
  process.stdout.write(`${BATCHES} batches of ${ITEMS} answers of ${ANSWER_BYTES / 1e6} MB: ${whole} answered, ${refused} refused as unavailable\n`);
  process.stdout.write(`  resident: ${startMb.toFixed(0)} MB before, ${gatheredMb.toFixed(0)} MB at most\n`);
  resetPeak(pid);
  const single = await Promise.all(Array.from({ length: BATCHES }, (_, at) => answersIn(url, calls[at % ITEMS] ?? "")));
  process.stdout.write(
    `${BATCHES} single calls of the same: ${single.reduce((sum, it) => sum + it.whole, 0)} answered, ${memoryMb(pid).peak.toFixed(0)} MB at most\n`,
  );
  const missed = [
    ...(gatheredMb - startMb > MOST_GROWTH_MB ? [`grew by ${(gatheredMb - startMb).toFixed(0)} MB, at most ${MOST_GROWTH_MB}`] : []),
    ...(whole === 0 || whole + refused !== BATCHES * ITEMS ? ["an item has neither an answer nor a refusal, or all were refused"] : []),
    ...(single.some((it) => it.whole !== 1) ? ["a single call was not answered"] : []),
  ];
  process.stdout.write(missed.length === 0 ? "Within its targets.\n" : `${missed.map((it) => `MISSED ${it}`).join("\n")}\n`);
  return missed.length === 0 ? 0 : 1;
}

/** Reads an answer without keeping it; long results are counted by their bytes. */
async function answersIn(url: string, body: string): Promise<{ readonly whole: number; readonly refused: number }> {
  const response = await fetch(url, { method: "POST", body });
  let bytes = 0;
  let refused = 0;
  for await (const piece of response.body ?? []) {
    if (!(piece instanceof Uint8Array)) continue;
    bytes += piece.length;
    refused += Buffer.from(piece).toString("latin1").split('"code":"unavailable"').length - 1;
  }
  return { whole: Math.floor(bytes / ANSWER_BYTES), refused };
}
