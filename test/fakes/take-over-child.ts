// A process that takes over the files of a data directory, and is killed at a transaction: before
// it is committed (`inside`), or after that (`committed`). Arguments: directory, moment, and which
// transaction; 0 = none.
import { pino } from "pino";
import { takeOverFiles } from "../../src/app/store/kept-files.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";

const [dataDir = "", moment, nth] = process.argv.slice(2);
const store = await openStore({ url: "", dataDir });
let count = 0;
const transaction: Store["transaction"] = async (run) => {
  const isLast = ++count === Number(nth);
  const result = await store.transaction(async (tx) => {
    const written = await run(tx);
    if (isLast && moment === "inside") process.kill(process.pid, "SIGKILL");
    return written;
  });
  if (isLast) process.kill(process.pid, "SIGKILL");
  return result;
};
await takeOverFiles({ transaction }, { dataDir, log: pino() });
await store.close();
