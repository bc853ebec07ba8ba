// Recognises the operator of the instance by the operator token. Knows no operation and no page.
import { isSameSecret } from "../../secrets/secret.ts";

const MAX_HEADER_CHARS = 512;

/** The credential in `Authorization: Bearer`; null = none. */
export function bearerOf(header: string | undefined): string | null {
  if (header === undefined || header.length > MAX_HEADER_CHARS) return null;
  return /^bearer +([^\s]+) *$/i.exec(header)?.[1] ?? null;
}

/** Compares in constant time; null is never the operator token. */
export function isOperatorToken(given: string | null, expected: string | null): boolean {
  return given !== null && expected !== null && isSameSecret(given, expected);
}
