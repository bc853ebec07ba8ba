// One anvil process: finds the binary, starts, watches and ends it. Knows nothing of other nodes,
// blocks or routing.
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { z } from "zod";
import { pause, type Runtime } from "../runtime.ts";

/** A running local EVM node. */
export interface AnvilNode {
  readonly id: string;
  readonly pid: number;
  readonly url: string;
  readonly wsUrl: string;
  /** False once the process has ended. */
  readonly alive: () => boolean;
  /**
   * Calls the node directly. Throws `RpcError` if it answers with an error, `NodeSilent` if it does
   * not answer within five seconds.
   */
  readonly rpc: (method: string, ...params: readonly unknown[]) => Promise<unknown>;
  /**
   * As `rpc`, for several calls in one request, which the node begins in this order, one right
   * after the other. A call that failed has its error as its result.
   */
  readonly rpcs: (calls: readonly AnvilCall[]) => Promise<readonly unknown[]>;
  /** Kills the process; resolves once it has exited. */
  readonly end: () => Promise<void>;
}

/** A method and its parameters. */
export type AnvilCall = readonly [method: string, ...params: readonly unknown[]];

export interface AnvilOptions {
  readonly id: string;
  readonly args: readonly string[];
  readonly runtime: Runtime;
  /** Called once if the process ends unexpectedly; the text says how. */
  readonly onCrash: (how: string) => void;
}

/** A JSON-RPC error that the node answered with. */
export class RpcError extends Error {}

/** The node did not answer: it has exited, or hangs. */
export class NodeSilent extends Error {
  readonly node: AnvilNode;
  constructor(node: AnvilNode, cause: unknown) {
    super(`${node.id} does not answer`, { cause });
    this.node = node;
  }
}

const READY_TIMEOUT_MS = 30_000;
const READY_POLL_MS = 50;
const RPC_TIMEOUT_MS = 5_000;
const KEPT_OUTPUT_CHARS = 4_000;
const SHOWN_OUTPUT_LINES = 5;

const Answer = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
});

/**
 * Starts a node on a free port of 127.0.0.1. Rejects with the last lines of its output if it does
 * not answer within thirty seconds.
 */
export async function startAnvil({ id, args, runtime, onCrash }: AnvilOptions): Promise<AnvilNode> {
  // A process group of its own, so that Ctrl-C in the terminal does not reach the node before the
  // service has ended. An empty environment, because the node needs none of the service's secrets.
  const child = spawn(anvilBinary(), ["--host", "127.0.0.1", "--port", "0", ...args], {
    detached: true,
    env: {},
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = keepOutput(child);
  let ended: string | null = null;
  let asked = false;
  const gone = new Promise<void>((resolve) => {
    const onEnd = (how: string): void => {
      if (ended !== null) return;
      ended = how;
      watchdog?.kill("SIGKILL");
      resolve();
    };
    child.once("error", (error) => onEnd(error.message));
    child.once("exit", (code, signal) => onEnd(signal ?? `exit code ${code}`));
  });
  const watchdog = child.pid === undefined ? null : startWatchdog(child.pid);
  const end = async (): Promise<void> => {
    asked = true;
    child.kill("SIGKILL");
    await gone;
  };

  const deadline = runtime.now() + READY_TIMEOUT_MS;
  for (;;) {
    const port = /Listening on 127\.0\.0\.1:(\d+)/.exec(output())?.[1];
    if (port !== undefined && child.pid !== undefined && ended === null) {
      const url = `http://127.0.0.1:${port}`;
      const node: AnvilNode = {
        id,
        pid: child.pid,
        url,
        wsUrl: `ws://127.0.0.1:${port}`,
        alive: () => ended === null,
        rpc: (...call) => rpcCall(node, call),
        rpcs: (calls) => rpcCalls(node, calls),
        end,
      };
      if (await answers(node)) {
        void gone.then(() => asked || onCrash(ended ?? "ended"));
        return node;
      }
    }
    if (ended !== null || runtime.now() > deadline) {
      const why = ended ?? `no answer within ${READY_TIMEOUT_MS / 1000} s`;
      await end();
      throw new Error(
        `${id} did not start (${why}). Its last ` +
          `lines:\n${output().trimEnd().split("\n").slice(-SHOWN_OUTPUT_LINES).join("\n")}`,
      );
    }
    await pause(runtime, READY_POLL_MS);
  }
}

/** Where npm installed the anvil binary for this platform. */
function anvilBinary(): string {
  const os = process.platform;
  const name = `@foundry-rs/anvil-${os}-${process.arch === "x64" ? "amd64" : process.arch}`;
  try {
    const wrapper = createRequire(import.meta.resolve("@foundry-rs/anvil/package.json"));
    return join(
      dirname(wrapper.resolve(`${name}/package.json`)),
      "bin",
      os === "win32" ? "anvil.exe" : "anvil",
    );
  } catch (cause) {
    throw new Error(
      `the local chain needs anvil (${name}), which is not installed. Beside an installed svc: ` +
        "npm install --global @foundry-rs/anvil; for npx: npx -p ./svc-….tgz -p " +
        "@foundry-rs/anvil svc; in a clone: npm install. Or set devnet: false",
      { cause },
    );
  }
}

/**
 * A shell that reads from a pipe to this process and kills the node when the pipe closes, so that
 * the node never outlives this process, not even after SIGKILL.
 */
function startWatchdog(pid: number): ChildProcess | null {
  if (process.platform === "win32") return null;
  const watchdog = spawn(
    "/bin/sh",
    ["-c", 'read -r _; kill -9 "$1" 2>/dev/null', "watchdog", String(pid)],
    {
      detached: true,
      env: {},
      stdio: ["pipe", "ignore", "ignore"],
    },
  );
  watchdog.stdin?.on("error", () => {});
  return watchdog;
}

/**
 * Keeps the last output of the process: its pipes never fill up, and a failed start can be
 * explained.
 */
function keepOutput(child: ChildProcess): () => string {
  let kept = "";
  const keep = (chunk: Buffer): void => {
    kept = (kept + chunk.toString("latin1")).slice(-KEPT_OUTPUT_CHARS);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  return () => kept;
}

async function answers(node: AnvilNode): Promise<boolean> {
  try {
    await node.rpc("anvil_setLoggingEnabled", false);
    return typeof (await node.rpc("eth_chainId")) === "string";
  } catch {
    return false;
  }
}

async function rpcCall(node: AnvilNode, call: AnvilCall): Promise<unknown> {
  const result = resultOf(call, await post(node, requestOf(call), Answer));
  if (result instanceof RpcError) throw result;
  return result;
}

async function rpcCalls(node: AnvilNode, calls: readonly AnvilCall[]): Promise<readonly unknown[]> {
  if (calls.length === 0) return [];
  const answers = await post(node, calls.map(requestOf), z.array(Answer).length(calls.length));
  return calls.map((call, at) => resultOf(call, answers[at] ?? {}));
}

function resultOf([method]: AnvilCall, { result, error }: z.infer<typeof Answer>): unknown {
  return error === undefined ? result : new RpcError(`${method}: ${error.message} (${error.code})`);
}

function requestOf([method, ...params]: AnvilCall): unknown {
  return { jsonrpc: "2.0", id: 1, method, params };
}

/** Throws `NodeSilent` if no such answer comes in time. */
async function post<T>(node: AnvilNode, body: unknown, schema: z.ZodType<T>): Promise<T> {
  try {
    const response = await fetch(node.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(RPC_TIMEOUT_MS),
    });
    return schema.parse(await response.json());
  } catch (cause) {
    throw new NodeSilent(node, cause);
  }
}
