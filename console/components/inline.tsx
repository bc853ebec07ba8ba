// What stands within a line: states in a word, moments, links to pages, keys.
import type { ComponentChildren } from "preact";
import { useApp, useTimed } from "../app/app.ts";
import { pathTo } from "../app/router.ts";
import { ago, breakable, clock, DASH, duration, moment, visible } from "../format/text.ts";
import type { Tone } from "../format/tone.ts";

interface BadgeProps {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}

/** A state in a coloured pill; the colour repeats what the word says. */
export function Badge({ tone, children }: BadgeProps) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** How a state is shown. */
export interface Word {
  readonly tone: Tone;
  readonly word: string;
}

/** A state as its table of words has it. */
export function StateBadge({ tone, word }: Word) {
  return <Badge tone={tone}>{word}</Badge>;
}

/** A coloured dot; the word beside it says the same. */
export function Dot({ tone }: Pick<Word, "tone">) {
  return <span class={`dot ${tone}`} aria-hidden="true" />;
}

interface TimeProps {
  /** Milliseconds or ISO text, by the clock of the service; null = unknown. */
  readonly at: number | string | null | undefined;
}

/** A moment in the past or future, told relative to now; the absolute one shows on hover. */
export function Time({ at }: TimeProps) {
  const atMs = typeof at === "string" ? Date.parse(at) : (at ?? Number.NaN);
  const text = useTimed((nowMs) => (Number.isFinite(atMs) ? ago(atMs, nowMs) : DASH));
  if (!Number.isFinite(atMs)) return <span>{DASH}</span>;
  return (
    <time dateTime={new Date(atMs).toISOString()} title={moment(atMs)} class="tight">
      {text}
    </time>
  );
}

/** A moment by the clock, with its day unless that is today. */
export function Clock({ at }: { readonly at: string }) {
  const text = useTimed((nowMs) => clock(Date.parse(at), nowMs));
  return (
    <time dateTime={at} title={moment(Date.parse(at))} class="tight">
      {text}
    </time>
  );
}

/** How old a reading of this browser is. */
export function Age({ readAtMs }: { readonly readAtMs: number }) {
  const { clock } = useApp();
  const text = useTimed((nowMs) => duration(nowMs - clock.get().offsetMs - readAtMs));
  return <span>{text}</span>;
}

interface LinkProps {
  /** Path and query, as `/requests?chain=base`. */
  readonly to: string;
  readonly class?: string;
  readonly current?: boolean;
  readonly children: ComponentChildren;
}

/** Goes there without loading the page again; a click with a modifier key is the browser's. */
export function Link({ to, class: name, current = false, children }: LinkProps) {
  const { router } = useApp();
  const follow = (event: MouseEvent): void => {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey);
    if (!isPlain || event.defaultPrevented) return;
    event.preventDefault();
    router.go(to);
  };
  return (
    <a
      href={router.href(to)}
      class={name}
      onClick={follow}
      {...(current ? { "aria-current": "page" as const } : {})}
    >
      {children}
    </a>
  );
}

/** A name that users gave: it breaks behind `_`, hides nothing, and turns nothing around. */
export function Name({ text }: { readonly text: string }) {
  const parts = breakable(visible(text)).flatMap((part, at) => [at > 0 && <wbr />, part]);
  return <bdi>{parts}</bdi>;
}

/** A provider by the id that is shown, or by its name; leads to its page. */
export function ProviderLink({ id, name = id }: { readonly id: string; readonly name?: string }) {
  return (
    <Link to={pathTo("provider", id)}>
      <Name text={name} />
    </Link>
  );
}

interface KeyNameProps {
  readonly name: string;
  readonly prefix: string;
  readonly isDeleted: boolean;
}

/** A key as it is told from others. */
export function KeyName({ name, prefix, isDeleted }: KeyNameProps) {
  return (
    <>
      <Name text={name === "" ? "Unnamed" : name} /> <span class="mono muted small">{prefix}…</span>
      {isDeleted ? <span class="muted small"> deleted</span> : null}
    </>
  );
}
