// The port to documents about the whole service: each worker knows a part, and the worker that
// received the request answers for all. Knows no document.

/** Identifies a document. */
export type DocumentQuery =
  /** The samples of all metrics. */
  | { readonly kind: "metrics"; readonly realIds: boolean }
  /** The providers of a chain. */
  | { readonly kind: "chain"; readonly chain: string; readonly realIds: boolean }
  /** Whether calls can be served. */
  | { readonly kind: "ready" };

/** Reads documents of the whole service. */
export interface ServiceDocuments {
  /** Calls back once; null = the other workers do not answer. */
  read(query: DocumentQuery, use: (document: unknown) => void): void;
}

const MAX_NAME = 100;

/** Parses an identification; null = invalid. */
export function parseDocumentQuery(value: unknown): DocumentQuery | null {
  if (typeof value !== "object" || value === null || !("kind" in value)) return null;
  const { kind } = value;
  if (kind === "ready") return { kind };
  if (!("realIds" in value) || typeof value.realIds !== "boolean") return null;
  const { realIds } = value;
  if (kind === "metrics") return { kind, realIds };
  if (kind !== "chain" || !("chain" in value) || typeof value.chain !== "string") return null;
  return value.chain.length > MAX_NAME ? null : { kind, chain: value.chain, realIds };
}
