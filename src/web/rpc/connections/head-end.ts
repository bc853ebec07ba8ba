// The end of the heads that the fast path writes: the headers that every answer carries, the date
// and what becomes of the connection. Made once a second, as text and as bytes.
import type { Runtime } from "../../../runtime.ts";
import { ALWAYS } from "../../http/respond.ts";

/** The end of a head, up to and including the empty line; one character per byte. */
export interface HeadEnd {
  readonly text: string;
  readonly bytes: Buffer;
}

/** The ends of heads at this moment. */
export interface HeadEnds {
  /** The connection stays open. */
  readonly keepAlive: HeadEnd;
  readonly close: HeadEnd;
}

const SECOND_MS = 1_000;

/** Returns the current ends of heads. They are made when needed, and once a second at most. */
export function headEnds(
  runtime: Pick<Runtime, "wallMs" | "after">,
  keepAliveTimeoutMs: number,
): () => HeadEnds {
  const seconds = Math.floor(keepAliveTimeoutMs / SECOND_MS);
  const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}`;
  let current: HeadEnds | null = null;
  return () => {
    if (current !== null) return current;
    const wallMs = runtime.wallMs();
    const date = `Date: ${new Date(wallMs).toUTCString()}\r\n`;
    current = {
      keepAlive: headEnd(`${date}${keepAlive}`),
      close: headEnd(`${date}Connection: close`),
    };
    // The clock is read once a second instead of for every answer.
    runtime.after(SECOND_MS - (wallMs % SECOND_MS), () => {
      current = null;
    });
    return current;
  };
}

function headEnd(lines: string): HeadEnd {
  const bytes = Buffer.from(`${ALWAYS}${lines}\r\n\r\n`, "latin1");
  return { text: bytes.toString("latin1"), bytes };
}
