// Hashes and ids of payments.
import { DASH } from "../format/text.ts";
import { CopyButton } from "./copy-button.tsx";

const SHOWN_CHARS = 10;

/** A hash or id, shortened, with a button that copies the whole. */
export function Hash({ text }: { readonly text: string | null | undefined }) {
  if (text === null || text === undefined) return <span>{DASH}</span>;
  return (
    <span class="page-actions">
      <code title={text}>{text.slice(0, SHOWN_CHARS)}…</code>
      <CopyButton text={text} what={text.slice(0, SHOWN_CHARS)} />
    </span>
  );
}
