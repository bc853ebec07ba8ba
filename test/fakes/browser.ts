// A real browser without a window, driven over its debugging protocol: opens pages, runs scripts in
// them and keeps what they log. Knows no page.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { WebSocket } from "ws";

const BINARY = "/usr/bin/chromium";
const START_MS = 60_000;
const COMMAND_MS = 60_000;
const WAIT_MS = 60_000;
/** How the browser says that the document an expression ran in was replaced by the next one. */
const DOCUMENT_REPLACED =
  /navigated or closed|context was destroyed|Cannot find (default execution )?context/;

/** Why no browser can be started here, as `skip` of a test takes it; false = one can. */
export const WITHOUT_BROWSER: string | false = existsSync(BINARY)
  ? false
  : `${BINARY} is not installed`;

/** What a page said on its console, uncaught exceptions included. */
interface Said {
  readonly level: string;
  readonly text: string;
}

/** A request that a page sent. */
interface Sent {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A page, open. */
export interface Page {
  readonly said: readonly Said[];
  readonly sent: readonly Sent[];
  /**
   * Value of an expression; promises are waited for. Fails where the page goes on to another
   * document meanwhile: `until` is for that.
   */
  // biome-ignore lint/suspicious/noExplicitAny: a script may answer anything
  run(expression: string): Promise<any>;
  /**
   * Resolves once a document is loaded whole in which an expression is true, this one or a later
   * one.
   */
  until(expression: string): Promise<void>;
  /** Types into what has the focus. */
  type(text: string): Promise<void>;
  send(method: string, params?: object): Promise<Record<string, unknown>>;
}

/** A running browser. */
export interface Browser {
  open(url: string): Promise<Page>;
  close(): Promise<void>;
}

interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: every command and event has a shape of its own
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: every command and event has a shape of its own
  readonly result?: any;
  readonly error?: { readonly message: string };
}

type Send = (
  method: string,
  params?: object,
  sessionId?: string,
) => Promise<Record<string, unknown>>;

/** Starts a browser with a profile of its own. */
export async function startBrowser(): Promise<Browser> {
  const directory = await mkdtemp(join(tmpdir(), "svc-browser-"));
  const quiet = [
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
  ];
  const args = [
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-port=0",
    `--user-data-dir=${directory}`,
    ...quiet,
    "about:blank",
  ];
  const child = spawn(BINARY, args, { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  try {
    const { ws, send, listeners } = await connect(await debuggerUrl(child.stderr));
    return {
      open: (url) => openPage(send, listeners, url),
      async close() {
        await Promise.race([
          send("Browser.close").then(() => ended),
          new Promise((resolve) => setTimeout(resolve, 3_000).unref()),
        ]);
        ws.terminate();
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

function debuggerUrl(stderr: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error("the browser did not start in time")),
      START_MS,
    );
    createInterface({ input: stderr }).on("line", (line) => {
      const url = /DevTools listening on (ws:\S+)/.exec(line)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}

async function connect(url: string) {
  const ws = new WebSocket(url, { maxPayload: 64 * 1024 * 1024 });
  const waiting = new Map<number, (message: Message) => void>();
  const listeners = new Map<string, (message: Message) => void>();
  let count = 0;
  ws.on("message", (data) => {
    const message: Message = JSON.parse(String(data));
    if (message.id !== undefined) waiting.get(message.id)?.(message);
    else listeners.get(message.sessionId ?? "")?.(message);
  });
  await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
  const send: Send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      const id = ++count;
      const timer = setTimeout(() => settle({ error: { message: "no answer" } }), COMMAND_MS);
      const settle = ({ error, result }: Message): void => {
        clearTimeout(timer);
        waiting.delete(id);
        if (error === undefined) resolve(result);
        else reject(new Error(`${method}: ${error.message}`));
      };
      waiting.set(id, settle);
      ws.send(JSON.stringify({ id, method, params, sessionId }));
    });
  return { ws, send, listeners };
}

async function openPage(
  sendAny: Send,
  listeners: Map<string, (message: Message) => void>,
  url: string,
): Promise<Page> {
  const { browserContextId } = await sendAny("Target.createBrowserContext");
  const { targetId } = await sendAny("Target.createTarget", {
    url: "about:blank",
    browserContextId,
  });
  const { sessionId } = await sendAny("Target.attachToTarget", { targetId, flatten: true });
  const session = String(sessionId);
  const send = (method: string, params: object = {}) => sendAny(method, params, session);
  const [said, sent]: [Said[], Sent[]] = [[], []];
  listeners.set(session, ({ method, params }) => {
    if (method === "Network.requestWillBeSent")
      sent.push({ url: params.request.url, headers: params.request.headers });
    if (method === "Log.entryAdded")
      said.push({
        level: params.entry.level,
        text: `${params.entry.text} ${params.entry.url ?? ""}`,
      });
    if (method === "Runtime.consoleAPICalled")
      said.push({ level: params.type, text: JSON.stringify(params.args) });
    if (method === "Runtime.exceptionThrown")
      said.push({ level: "exception", text: JSON.stringify(params.exceptionDetails) });
  });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  await send("Page.navigate", { url });
  const run = async (expression: string) => {
    const { result, exceptionDetails } = parseEvaluated(
      await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }),
    );
    if (exceptionDetails !== undefined)
      throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return result.value;
  };
  const holds = (expression: string): Promise<boolean> =>
    run(`document.readyState === "complete" && (${expression})`).catch((error: Error) => {
      if (DOCUMENT_REPLACED.test(error.message)) return false;
      throw error;
    });
  const until = async (expression: string): Promise<void> => {
    for (
      const deadline = Date.now() + WAIT_MS;
      !(await holds(expression));
      await new Promise((resolve) => setTimeout(resolve, 50))
    )
      if (Date.now() > deadline)
        throw new Error(
          `never true: ${expression}\non the page: ` +
            `${await run("document.body.innerText")}\nsaid: ${JSON.stringify(said)}`,
        );
  };
  const type = async (text: string): Promise<void> =>
    void (await send("Input.insertText", { text }));
  await until(`location.href !== "about:blank"`);
  return { said, sent, run, until, type, send };
}

// biome-ignore-start lint/suspicious/noExplicitAny: what a script answered
function parseEvaluated(evaluated: Record<string, unknown>): {
  readonly result: { readonly value: any };
  // biome-ignore-end lint/suspicious/noExplicitAny: what a script answered
  readonly exceptionDetails?: unknown;
} {
  // biome-ignore lint/suspicious/noExplicitAny: what a script answered
  return evaluated as any;
}
