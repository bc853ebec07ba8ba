// What eth_getLogs over 200,000 blocks costs where every provider takes 2,000 blocks or 10,000
// results and 5 % of their answers are failures: calls to providers, memory of the service, and
// whether the answer is that of one archive. `node bin/svc.mjs --run bench/ranges.ts [SEED]`.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answerOf, type ChainView, type Density, logsOf } from "../test/fakes/range-chain.ts";
import { seededChance } from "./arrivals.ts";
import { memoryMb, resetPeak } from "./procfs.ts";

const SEED = Number(process.argv[2] ?? 1);
const HEAD = 300_000;
const FROM = 50_001;
const BLOCKS = 200_000;
const LIMITS = { blocks: 2_000, results: 10_000 };
const FAILURES = 0.05;
const PROVIDERS = 3;
const VIEW: ChainView = { head: HEAD, finalized: HEAD - 64, forks: [] };
const TARGETS = { calls: 1.1, memoryMb: 64 };

/** Two logs a block; four stretches of 500 blocks have so many that 2,000 blocks are too many. */
const density: Density = (block) => {
  const at = (block - FROM) % 50_000;
  return at >= 20_000 && at < 20_500 ? 16 : 2;
};

const chance = seededChance(SEED);
let calls = 0;
let failed = 0;
let others = 0;

function provider() {
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
      const isLogs = method === "eth_getLogs";
      if (isLogs) calls++;
      else if (
        method !== "eth_chainId" &&
        method !== "eth_blockNumber" &&
        params[0] !== "finalized"
      )
        others++;
      if (isLogs && chance() < FAILURES) {
        failed++;
        response.writeHead(502).end("bad gateway");
        return;
      }
      const answer = answerOf({ method, params }, VIEW, { density, limits: LIMITS });
      const rest =
        answer.kind === "result"
          ? `"result":${answer.json}`
          : `"error":${JSON.stringify(answer.error)}`;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"jsonrpc":"2.0","id":${id},${rest}}`);
    });
  });
  return new Promise<{ readonly url: string; close(): void }>((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      resolve({ url: `http://127.0.0.1:${port}`, close: () => server.close() });
    }),
  );
}

/** The fewest calls: as many blocks a call as both limits allow, from the first block on. */
function fewestCalls(): number {
  let parts = 1;
  let [blocks, results] = [0, 0];
  for (let block = FROM; block < FROM + BLOCKS; block++) {
    const more = density(block);
    if (blocks === LIMITS.blocks || results + more > LIMITS.results) {
      parts++;
      [blocks, results] = [0, 0];
    }
    blocks++;
    results += more;
  }
  return parts;
}

/** What one archive answers, as a digest. */
function archiveDigest(): { readonly digest: string; readonly bytes: number } {
  const hash = createHash("sha256");
  let bytes = 0;
  const add = (text: string): void => {
    hash.update(text);
    bytes += text.length;
  };
  add("[");
  for (let from = FROM; from < FROM + BLOCKS; from += 1_000) {
    if (from > FROM) add(",");
    add(logsOf({ from, to: from + 999 }, VIEW, density).join(","));
  }
  add("]");
  return { digest: hash.digest("hex"), bytes };
}

async function startService(urls: readonly string[], folder: string) {
  const file = join(folder, "svc.yml");
  const providers = urls.map((url, at) => ({
    id: `p${at}`,
    url,
    archival: true,
    capabilities: { limits: { max_block_range: LIMITS.blocks } },
  }));
  writeFileSync(
    file,
    JSON.stringify({
      server: { port: 0 },
      data_dir: folder,
      chains: { bench: { chain_id: 1, block_time_ms: 12_000 } },
      profiles: { public: { chains: { bench: { providers } } } },
      hosted: { enabled: false },
    }),
  );
  const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
  const child = spawn(process.execPath, [main, "serve", "--config", file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let log = "";
  const port = await new Promise<number>((resolve, reject) => {
    child.on("exit", () => reject(new Error(log)));
    child.stdout.on("data", (chunk: Buffer) => {
      log += chunk.toString();
      const found = /127\.0\.0\.1:(\d+)/.exec(log);
      if (found !== null) resolve(Number(found[1]));
    });
  });
  return { child, port };
}

/** Calls once, and digests the result. */
function ask(port: number, from: number, to: number) {
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "eth_getLogs",
    params: [{ fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}` }],
  });
  const head = '{"jsonrpc":"2.0","id":1,"result":';
  return new Promise<{ readonly digest: string; readonly bytes: number }>((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const call = request({ port, path: "/rpc/bench", method: "POST", headers }, (response) => {
      const hash = createHash("sha256");
      let seen = 0;
      let last = Buffer.alloc(0);
      response.on("data", (chunk: Buffer) => {
        // The envelope's head and its last brace are left out.
        const bytes = Buffer.concat([last, chunk]);
        const cut = Math.min(bytes.length, Math.max(0, head.length - seen));
        const kept = bytes.subarray(cut, Math.max(cut, bytes.length - 1));
        seen += cut + kept.length;
        hash.update(kept);
        last = Buffer.from(bytes.subarray(cut + kept.length));
      });
      response.on("end", () => resolve({ digest: hash.digest("hex"), bytes: seen - head.length }));
      response.on("error", reject);
    });
    call.on("error", reject);
    call.end(body);
  });
}

const folder = mkdtempSync(join(tmpdir(), "svc-bench-ranges-"));
const providers = await Promise.all(Array.from({ length: PROVIDERS }, provider));
const { child, port } = await startService(
  providers.map(({ url }) => url),
  folder,
);
const pid = child.pid ?? 0;
try {
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const archive = archiveDigest();
  // Once over a shorter range, so that what is loaded and allocated at first does not count.
  await ask(port, FROM, FROM + 9_999);
  [calls, failed, others] = [0, 0, 0];
  const before = memoryMb(pid).rss;
  resetPeak(pid);
  const startedAtMs = Date.now();
  const answer = await ask(port, FROM, FROM + BLOCKS - 1);
  const tookMs = Date.now() - startedAtMs;
  const growthMb = memoryMb(pid).peak - before;
  const fewest = fewestCalls();
  // A failed call has to be made again: nobody can do with less.
  const least = fewest + failed;
  const isWhole = answer.digest === archive.digest && answer.bytes === archive.bytes;
  console.log(
    `seed ${SEED}: ${isWhole ? "complete and equal to the archive" : "DIFFERENT"}, ` +
      `${(answer.bytes / 1e6).toFixed(1)} MB in ${tookMs} ms; ${calls} calls (${failed} failed) ` +
      `and ${others} for blocks, ${(calls / least).toFixed(3)} times the least number ` +
      `(${fewest} and the failed ones again; target ${TARGETS.calls}); ` +
      `memory +${growthMb.toFixed(1)} MB (target ${TARGETS.memoryMb})`,
  );
  const isMet = isWhole && calls <= TARGETS.calls * least && growthMb <= TARGETS.memoryMb;
  process.exitCode = isMet ? 0 : 1;
} finally {
  child.kill();
  for (const { close } of providers) close();
  rmSync(folder, { recursive: true, force: true });
}
