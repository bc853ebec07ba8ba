// A state in a word, with a colour that repeats what the word says.
import type { ComponentChildren, JSX } from "preact";
import type { Tone } from "../format/tone.ts";

interface BadgeProps {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}

/** A state in a coloured pill. */
export function Badge({ tone, children }: BadgeProps): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A coloured dot; the word beside it says the same. */
export function Dot({ tone }: { readonly tone: Tone }): JSX.Element {
  return <span class={`dot ${tone}`} aria-hidden="true" />;
}
