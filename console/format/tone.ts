// How good or bad something is, for colours beside words.

/** `idle` = nothing can be said. */
export type Tone = "good" | "warn" | "bad" | "idle";

const SEVERITY: readonly Tone[] = ["idle", "good", "warn", "bad"];

/** The worst of several tones. */
export function worstTone(tones: readonly Tone[]): Tone {
  const worst = Math.max(0, ...tones.map((tone) => SEVERITY.indexOf(tone)));
  return SEVERITY[worst] ?? "idle";
}
