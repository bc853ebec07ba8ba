// The embedded store as workers of a service have it: the file open in one place, statements sent
// there as they would travel between processes.
import { deserialize, serialize } from "node:v8";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import type { SendStatement } from "../../src/shared/store/statement.ts";
import type { StatementServer } from "../../src/shared/store/statement-server.ts";
import { openStore, type Store, type StorePlace, serveFile } from "../../src/shared/store/store.ts";

/** A file that is open for workers. */
export interface WorkerFile {
  readonly statements: StatementServer;
  /** The store as the worker of this name has it. */
  open(worker: string): Promise<Store>;
  /** Sends what a worker sends. */
  sendAs(worker: string): SendStatement;
  close(): Promise<void>;
}

/** Opens the file of a data directory for workers. */
export async function openWorkerFile(
  dataDir: string,
  runtime: Pick<Runtime, "after" | "now"> = realRuntime,
): Promise<WorkerFile> {
  const { statements, close } = await serveFile(dataDir, runtime);
  const sendAs =
    (worker: string): SendStatement =>
    async (message) =>
      travelled(await statements.run(travelled(message), worker));
  return {
    statements,
    sendAs,
    open: (worker) => openStore({ url: "", dataDir, send: sendAs(worker) }),
    close,
  };
}

/** A store of its own whose file is closed with it. */
export async function openAsWorker({ dataDir }: StorePlace): Promise<Store> {
  const file = await openWorkerFile(dataDir);
  const store = await file.open("1");
  return {
    ...store,
    async close() {
      await store.close();
      await file.close();
    },
  };
}

function travelled<T>(value: T): T {
  return deserialize(serialize(value));
}
