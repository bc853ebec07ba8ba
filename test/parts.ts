// The parts of the test suite by folder, which of them are fast, and in which order files run.
// Runs nothing.

/** The part that a test file counts to: its folder, or what several folders are together. */
export function partOf(path: string): string {
  if (isUnit(path)) return "unit";
  const [top = "", folder = ""] = path.split("/");
  if (top !== "test") return top;
  return HOSTED.includes(folder) ? "hosted" : folder.endsWith(".ts") ? "repository" : folder;
}

/** Whether a test needs no database, no chain and no process of its own: it takes moments. */
export function isUnit(path: string): boolean {
  return UNIT_FOLDERS.some((folder) => path.startsWith(`test/${folder}/`)) && !SLOW_UNITS.has(path);
}

/** The longest files first: one that starts last keeps the run waiting while a core is idle. */
export function inOrder(paths: readonly string[]): readonly string[] {
  const first = LONGEST_FIRST.filter((path) => paths.includes(path));
  return [...first, ...paths.filter((path) => !first.includes(path)).sort()];
}

const UNIT_FOLDERS = ["core", "config", "conformance", "observe", "secrets", "upstream", "web"];
const HOSTED = ["hosted", "ledger", "store"];
/** Files of unit folders that take longer: thousands of random cases, or real connections. */
const SLOW_UNITS: ReadonlySet<string> = new Set([
  "test/config/config.test.ts",
  "test/conformance/exchanges.test.ts",
  "test/upstream/http/foreign-answers.test.ts",
  "test/upstream/http/origin.test.ts",
  "test/upstream/socket/sockets.test.ts",
  "test/upstream/ssrf-guard.test.ts",
  "test/web/server/hand-over.test.ts",
]);

/** Fast files that measure memory: what others do in their process would count. */
export const MEASURING_MEMORY: ReadonlySet<string> = new Set([
  "test/observe/feed/event-feed.test.ts",
  "test/observe/feed/hostile-calls.test.ts",
  "test/upstream/stream/filter-quota.test.ts",
  "test/upstream/stream/kept-events.test.ts",
  "test/web/discovery/documents.test.ts",
]);

/** The files that took longest when all were measured, the longest first. */
export const LONGEST_FIRST: readonly string[] = [
  "test/soak/cluster.test.ts",
  "test/console/large-service.test.ts",
  "test/walks/workers.test.ts",
  "test/console/console-walk.test.ts",
  "test/walks/cluster.test.ts",
  "test/payments/session/session-sim.test.ts",
  "test/walks/paying.test.ts",
  "test/walks/continuity.test.ts",
  "test/sim/streams.test.ts",
  "test/payments/matrix/rows.test.ts",
  "test/walks/hosted-workers.test.ts",
  "test/walks/fast-path.test.ts",
  "test/operations/statuses.test.ts",
  "test/walks/hostile-clients.test.ts",
  "test/soak/sends.test.ts",
  "test/devnet/payments/start.test.ts",
  "test/soak/views.test.ts",
  "test/walks/gathered-answers.test.ts",
  "test/walks/shared-workers.test.ts",
  "test/payments/matrix/matrix-evm.test.ts",
  "test/walks/session-processes.test.ts",
  "test/walks/hosted-process.test.ts",
  "test/walks/payment-crash.test.ts",
  "test/walks/session-kill.test.ts",
  "test/hosted/credit/crash.test.ts",
  "test/web/server/hand-over.test.ts",
  "test/payments/purchase/purchases-sim.test.ts",
  "test/walks/session.test.ts",
  "test/walks/session-hostile.test.ts",
  "test/sim/stalls.test.ts",
  "test/upstream/http/foreign-answers.test.ts",
  "test/payments/session/voucher-acceptor.test.ts",
  "test/payments/matrix/matrix-tempo.test.ts",
  "test/payments/matrix/storm.test.ts",
];

/** Walks about the bytes of requests and answers: they run on node's server and undici as well. */
export const HTTP_WALKS: readonly string[] = [
  "batches",
  "charging",
  "compression",
  "corpus",
  "drain",
  "failover",
  "pipelining",
  "streaming",
  "surface",
  "wire",
].map((name) => `test/walks/${name}.test.ts`);
