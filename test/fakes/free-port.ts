// A port for a server that a test starts later, or again: below those that the system gives to
// whoever asks for any, so that nobody else has it meanwhile.
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const LOWEST = 10_000;
/** Linux gives out ports from 32,768 on, other systems higher ones. */
const END = 30_000;

/** A port of 127.0.0.1 that nobody listens at. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, END);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
