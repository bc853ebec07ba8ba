// Providers that die and come back: at any time, and now and then just after they accepted a
// transaction, before any other provider has heard of it. One is dead at a time, and only two ever
// die: a circuit stays open for longer than a run takes.
import type { ViewServer } from "./network.ts";

/** Kills providers until stopped. */
export interface Deaths {
  /** A provider has accepted a transaction. */
  onAccepted(provider: number): void;
  readonly count: () => number;
  /** Ends the killing; every provider serves when it resolves. */
  stop(): Promise<void>;
}

const LEAST_PAUSE_MS = 200;
const MOST_PAUSE_MS = 700;
const LEAST_DEAD_MS = 150;
const MOST_DEAD_MS = 600;
const DIES_AFTER_ACCEPTING = 0.15;
const FORGETS_ITS_POOL = 0.5;
/** Long enough for the answer to be written, mostly. */
const MOST_LAST_WORDS_MS = 6;

const MORTAL = 2;

/** Begins. */
export function startDeaths(servers: readonly ViewServer[], random: () => number): Deaths {
  const first = Math.floor(random() * servers.length);
  const mortal = Array.from({ length: MORTAL }, (_, at) => servers[(first + at) % servers.length]);
  let count = 0;
  let isOver = false;
  let current: Promise<void> | null = null;
  let timer = setTimeout(next, pauseMs());

  function pauseMs(): number {
    return LEAST_PAUSE_MS + random() * (MOST_PAUSE_MS - LEAST_PAUSE_MS);
  }

  function next(): void {
    kill(mortal[Math.floor(random() * MORTAL)]);
    timer = setTimeout(next, pauseMs());
  }

  function kill(server: ViewServer | undefined): void {
    if (isOver || current !== null || server?.isServing() !== true || !mortal.includes(server))
      return;
    count++;
    current = dieAndReturn(server, random).finally(() => {
      current = null;
    });
  }

  return {
    onAccepted(provider) {
      if (random() < DIES_AFTER_ACCEPTING)
        setTimeout(() => kill(servers[provider]), random() * MOST_LAST_WORDS_MS);
    },
    count: () => count,
    async stop() {
      isOver = true;
      clearTimeout(timer);
      await current;
    },
  };
}

async function dieAndReturn(server: ViewServer, random: () => number): Promise<void> {
  const deadMs = LEAST_DEAD_MS + random() * (MOST_DEAD_MS - LEAST_DEAD_MS);
  if (random() < FORGETS_ITS_POOL) server.provider.pool.clear();
  await server.stop();
  await new Promise((resolve) => setTimeout(resolve, deadMs));
  await server.start();
}
