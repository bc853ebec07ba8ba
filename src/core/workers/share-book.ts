// The port to the book of shared bounds: each process of a cluster writes its share of each bound
// there. A process reads there what the others have, and writes only its own part.
import type { HeldPart } from "./division.ts";

/** What a process writes of one bound. */
export interface ShareEntry extends HeldPart {
  /** Which bound. */
  readonly scope: string;
}

/** What another process wrote. */
export interface OtherShare extends ShareEntry {
  readonly process: string;
  /** When, by the clock of the book: another time is a sign of life. */
  readonly writtenAt: number;
  /** How long ago, by the same clock. */
  readonly ageMs: number;
}

/** The book. A failure to reach it is thrown. */
export interface ShareBook {
  /** The name of this process in it. */
  readonly process: string;
  /** Writes the shares of this process, and reads those of other processes of the same bounds. */
  write(entries: readonly ShareEntry[]): Promise<readonly OtherShare[]>;
  /**
   * Writes what `decide` returns for the entries of others, unless another process raised its share
   * meanwhile; it may be called more than once. Null = another process is at it, and nothing was
   * written.
   */
  raise(
    scopes: readonly string[],
    decide: (others: readonly OtherShare[]) => readonly ShareEntry[],
  ): Promise<readonly ShareEntry[] | null>;
  /** Removes what others wrote who are silent, unless they wrote again. */
  remove(silent: readonly OtherShare[]): Promise<void>;
}
