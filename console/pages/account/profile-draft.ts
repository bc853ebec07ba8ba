// The text of a Custom profile in the editor: made from what is saved, as far as that is shown, and
// read back. Pure.
import type { AnswerOf } from "../../api/contract-types.ts";

type Profile = AnswerOf<"GET /api/v1/profiles/{slug}">;
type Provider = Profile["chains"][string]["providers"][number];

/** The document of a saved profile as text: addresses and header values are hidden. */
export function draftOf({ name, chains }: Profile): string {
  const shown = Object.entries(chains).map(([chain, { providers, ...rest }]) => [
    chain,
    { ...rest, providers: providers.map(providerOf) },
  ]);
  return textOf({ ...(name === null ? {} : { name }), chains: Object.fromEntries(shown) });
}

function providerOf({ name, url, ws_url, headers, region, limits }: Provider): object {
  return {
    name,
    ...(url === null ? {} : { url }),
    ...(ws_url === null ? {} : { ws_url }),
    ...(headers.length === 0
      ? {}
      : { headers: Object.fromEntries(headers.map((header) => [header, "…"])) }),
    ...(region === null ? {} : { region }),
    limits,
  };
}

/** A document as text. */
export function textOf(document: unknown): string {
  return JSON.stringify(document, null, 2);
}

/** A text as a document, or why it is none. */
export function parseDraft(
  text: string,
):
  | { readonly kind: "document"; readonly document: unknown }
  | { readonly kind: "wrong"; readonly why: string } {
  try {
    const document: unknown = JSON.parse(text);
    return { kind: "document", document };
  } catch (error) {
    return { kind: "wrong", why: error instanceof Error ? error.message : String(error) };
  }
}
