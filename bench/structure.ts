// `npm run bench -- --structure`: how large the code is, by folder, how many interfaces repeat the
// class or maker beside them, and how many files and calls a keyed `eth_call` passes, counted with
// V8's precise coverage in a running service. Changes nothing.
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import { isRecord, startChild } from "./child.ts";
import { snapshot } from "./measure.ts";
import { hostedConfig, keyedPaths, type Site, type System, startServiceWith } from "./systems.ts";

/** One source file: its path, with forward slashes, and its text. */
interface Source {
  readonly path: string;
  readonly text: string;
}

/** One connection to the service. */
interface Caller {
  readonly port: number;
  readonly agent: Agent;
}

/** Functions that ran during one call: by file, how often. */
type CallsByFile = ReadonlyMap<string, number>;

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The largest files and folders that a reader is asked to hold in mind. */
const MAX_FILE_LINES = 400;
const MAX_FOLDER_FILES = 25;
const CALLS_BEFORE = 1_000;
/** Timers run beside a call: the call with the fewest functions is the one without them. */
const CALLS_COUNTED = 15;
const TOP_FILES = 15;

/** Prints all figures; resolves with the exit code. */
export async function measureStructure(): Promise<number> {
  const sources = globSync("{src,bin,console}/**/*.{ts,tsx,mjs,css,html,sol}", { cwd: ROOT })
    .filter((path) => !path.includes("node_modules"))
    .map((path) => ({
      path: path.replaceAll("\\", "/"),
      text: readFileSync(join(ROOT, path), "utf8"),
    }));
  print(sizeLines(sources));
  print(mirrorLines(sources.filter(({ path }) => path.startsWith("src/"))));
  print(callLines(await countedCall()));
  return 0;
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n\n`);
}

/** Lines of code: without blank lines and without those that hold a comment and nothing else. */
export function codeLines(text: string): number {
  let inComment = false;
  let count = 0;
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (inComment) {
      inComment = !line.includes("*/");
      continue;
    }
    if (line === "" || line.startsWith("//")) continue;
    if (line.startsWith("/*") || line.startsWith("<!--")) {
      inComment = !/\*\/|-->/.test(line);
      continue;
    }
    count++;
  }
  return count;
}

function sizeLines(sources: readonly Source[]): readonly string[] {
  const folders = new Map<string, { files: number; code: number }>();
  const inFolder = new Map<string, number>();
  let long = 0;
  let total = 0;
  for (const { path, text } of sources) {
    const code = codeLines(text);
    const parts = path.split("/");
    const top = parts.slice(0, parts[0] === "src" ? 2 : 1).join("/");
    const entry = folders.get(top) ?? { files: 0, code: 0 };
    folders.set(top, { files: entry.files + 1, code: entry.code + code });
    const folder = parts.slice(0, -1).join("/");
    inFolder.set(folder, (inFolder.get(folder) ?? 0) + 1);
    if (path.startsWith("src/") && text.split("\n").length > MAX_FILE_LINES) long++;
    total += code;
  }
  const full = [...inFolder].filter(([, files]) => files > MAX_FOLDER_FILES);
  const inSource = sources.filter(({ path }) => path.startsWith("src/"));
  const ofSource = inSource.reduce((sum, { text }) => sum + codeLines(text), 0);
  return [
    "| folder | files | lines of code |",
    "|---|---|---|",
    ...[...folders].map(([folder, { files, code }]) => `| ${folder} | ${files} | ${code} |`),
    `| **src** | ${inSource.length} | ${ofSource} |`,
    `| **src, bin and console** | ${sources.length} | ${total} |`,
    "",
    `files of src over ${MAX_FILE_LINES} lines: ${long}`,
    `folders over ${MAX_FOLDER_FILES} files: ${full.map(([name, files]) => `${name} ${files}`).join(", ") || "none"}`,
  ];
}

/**
 * Interfaces with one implementation in their own file: a class that implements it, or a function
 * `createX`, `openX`, `startX` … that returns an `X`.
 */
export function mirrorsIn(text: string): readonly string[] {
  const names = [...text.matchAll(/^export interface (\w+)/gm)].flatMap(([, name]) => name ?? []);
  return names.filter((name) => {
    const implemented = new RegExp(`class \\w+(?:<[^>]*>)? implements [^{]*\\b${name}\\b`);
    const made = new RegExp(
      `^export (?:async )?function (?:create|open|start|make)\\w*(?:<[^>]*>)?\\([^{]*?\\): (?:Promise<)?${name}\\b`,
      "m",
    );
    return implemented.test(text) || made.test(text);
  });
}

function mirrorLines(sources: readonly Source[]): readonly string[] {
  const found = sources.flatMap(({ path, text }) =>
    mirrorsIn(text).map((name) => `  ${path}: ${name}`),
  );
  const bags = sources.flatMap(({ text }) => [
    ...text.matchAll(/^(?:export )?interface \w+Parts\b/gm),
  ]);
  return [
    `interfaces that repeat the class or maker beside them: ${found.length}`,
    ...found,
    `interfaces named …Parts: ${bags.length}`,
  ];
}

/** Starts the service with keys and counts what one call passes, after a thousand. */
async function countedCall(): Promise<CallsByFile> {
  const dir = mkdtempSync(join(tmpdir(), "svc-structure-"));
  const stops: (() => Promise<void>)[] = [
    () => Promise.resolve(rmSync(dir, { recursive: true, force: true })),
  ];
  try {
    const upstream = startChild("upstream.ts", []);
    stops.push(upstream.stop);
    const site: Site = {
      dir,
      upstreamPorts: (await snapshot(upstream)).ports,
      nodeFlags: ["--inspect=127.0.0.1:0"],
    };
    const service = await startServiceWith(site, hostedConfig(site));
    stops.push(service.stop);
    const [path = ""] = await keyedPaths(service);
    const log = readFileSync(join(dir, "svc", "out.log"), "utf8");
    const address = /Debugger listening on (ws:\S+)/.exec(log)?.[1];
    if (address === undefined) throw new Error("the service opened no inspector");
    return await fewestCalls(await Inspector.connect(address), service, path);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function fewestCalls(
  inspector: Inspector,
  { port }: System,
  path: string,
): Promise<CallsByFile> {
  const caller: Caller = { port, agent: new Agent({ keepAlive: true, maxSockets: 1 }) };
  await inspector.send("Profiler.enable", {});
  await inspector.send("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  for (let at = 0; at < CALLS_BEFORE; at++) await ethCall(caller, path);
  let fewest: CallsByFile | null = null;
  for (let at = 0; at < CALLS_COUNTED; at++) {
    await inspector.send("Profiler.takePreciseCoverage", {});
    await ethCall(caller, path);
    const counted = callsByFile(await inspector.send("Profiler.takePreciseCoverage", {}));
    if (fewest === null || sum(counted) < sum(fewest)) fewest = counted;
  }
  inspector.close();
  caller.agent.destroy();
  return fewest ?? new Map();
}

/** One call on a connection that is used for nothing else, in one write. */
function ethCall({ port, agent }: Caller, path: string): Promise<void> {
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "eth_call",
    params: [{ to: `0x${"1".repeat(40)}`, data: "0x12345678" }, "latest"],
  });
  const headers = { "content-type": "application/json", "content-length": body.length };
  return new Promise((resolve, reject) => {
    const sent = request({ port, agent, path, method: "POST", headers }, (response) => {
      let answer = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        answer += chunk;
      });
      response.on("end", () => {
        if (answer.includes('"result"')) resolve();
        else reject(new Error(`the call failed: ${answer}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function callsByFile(coverage: Readonly<Record<string, unknown>>): CallsByFile {
  const counted = new Map<string, number>();
  for (const script of listOf(coverage["result"])) {
    const url = String(script["url"]);
    const at = url.indexOf("/src/");
    if (at === -1 || url.includes("node_modules")) continue;
    const calls = listOf(script["functions"])
      .flatMap(({ ranges }) => listOf(ranges).slice(0, 1))
      .reduce((total, { count }) => total + Number(count), 0);
    if (calls > 0) counted.set(url.slice(at + 1), calls);
  }
  return counted;
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function sum(counted: CallsByFile): number {
  return [...counted.values()].reduce((total, calls) => total + calls, 0);
}

function callLines(counted: CallsByFile): readonly string[] {
  const folders = new Set([...counted.keys()].map((path) => path.slice(0, path.lastIndexOf("/"))));
  const byCalls = [...counted].sort(([, one], [, other]) => other - one);
  return [
    `a keyed eth_call passes ${counted.size} files in ${folders.size} folders and ${sum(counted)} calls`,
    ...byCalls.slice(0, TOP_FILES).map(([path, calls]) => `  ${calls} ${path}`),
    "  files in order of their names:",
    ...[...counted.keys()].sort().map((path) => `    ${path}`),
  ];
}

/** A connection to the inspector of a process: one command at a time. */
class Inspector {
  readonly #socket: WebSocket;
  #nextId = 1;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static connect(address: string): Promise<Inspector> {
    const socket = new WebSocket(address, { maxPayload: 2 ** 30 });
    return new Promise((resolve, reject) => {
      socket.once("open", () => resolve(new Inspector(socket)));
      socket.once("error", reject);
    });
  }

  send(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const onMessage = (data: WebSocket.RawData): void => {
        const message: unknown = JSON.parse(String(data));
        if (!isRecord(message) || message["id"] !== id) return;
        this.#socket.off("message", onMessage);
        const { result } = message;
        if (isRecord(result)) resolve(result);
        else reject(new Error(`${method} failed: ${JSON.stringify(message["error"])}`));
      };
      this.#socket.on("message", onMessage);
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  close(): void {
    this.#socket.close();
  }
}
