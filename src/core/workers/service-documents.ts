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
