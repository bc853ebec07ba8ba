// What callers did and saw, as values: the history that the checker judges. Knows no socket.
import type { ChainBlock } from "../../fakes/chain.ts";

/** How callers are told apart whose promises differ. */
export const SESSION_KINDS = ["http", "socket", "seen", "key, one node", "key, all nodes"] as const;

/** A promise of its own. */
export type SessionKind = (typeof SESSION_KINDS)[number];

/** What one answer showed. */
export type Observation =
  /** A read that was made at this block. */
  | { readonly kind: "block"; readonly method: string; readonly block: ChainBlock }
  /** A read that names no more than the number of its block. */
  | { readonly kind: "height"; readonly method: string; readonly number: number }
  /** A transaction was sent; where it was not accepted, it may have reached a provider or not. */
  | {
      readonly kind: "sent";
      readonly hash: string;
      readonly account: string;
      readonly nonce: number;
      readonly isAccepted: boolean;
    }
  /** A transaction was asked for by its hash. */
  | { readonly kind: "transaction"; readonly hash: string; readonly isFound: boolean }
  /** A receipt; null = there is none yet. */
  | { readonly kind: "receipt"; readonly hash: string; readonly block: ChainBlock | null }
  /** The next nonce of an account of the caller's own. */
  | {
      readonly kind: "nonce";
      readonly account: string;
      readonly tag: "latest" | "pending";
      readonly value: number;
    }
  /** An error, or an answer that means nothing: no promise is kept or broken. */
  | { readonly kind: "failed"; readonly method: string; readonly code: string };

/** One request and its answer. */
export interface Operation {
  readonly kind: SessionKind;
  /** Operations of one session have one promise. */
  readonly session: string;
  readonly node: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly isBatch: boolean;
  readonly seen: readonly Observation[];
}

/** Errors by method and code; an operation of a key that roams stands in the history twice. */
export function failuresIn(history: readonly Operation[]): ReadonlyMap<string, number> {
  const failures = new Map<string, number>();
  for (const { kind, seen } of history) {
    if (kind === "key, all nodes") continue;
    for (const it of seen)
      if (it.kind === "failed") {
        const name = `${it.method}: ${it.code}`;
        failures.set(name, (failures.get(name) ?? 0) + 1);
      }
  }
  return failures;
}
