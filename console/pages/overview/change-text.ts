// What an event of the feed says, as a sentence. Pure.

import type { AnswerOf } from "../../api/contract-types.ts";
import type { StreamEvent } from "../../api/feed.ts";
import { parseJson, textIn } from "../../api/json.ts";
import { count } from "../../format/text.ts";
import type { Tone } from "../../format/tone.ts";
import { CORDONS } from "../../health/judge.ts";

/** Something that changed. */
export interface Change {
  readonly id: string;
  readonly at: string;
  readonly tone: Tone;
  readonly text: string;
  /** Of what it tells: the same for all changes of one circuit. */
  readonly subject: string;
  /** Where to look; null = nowhere in particular. */
  readonly profile: string | null;
  readonly chain: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** The change that an event tells of; null = it is of another kind. */
export function changeOf({ name, data }: Pick<StreamEvent, "name" | "data">): Change | null {
  return changeIn(name, Object(parseJson(data)));
}

/** The changes that the service remembers. */
export function changesIn({
  changes,
}: AnswerOf<"GET /api/v1/operator/changes">): readonly Change[] {
  return changes.flatMap(({ type, data }) => changeIn(type, data) ?? []);
}

const SUBJECT = ["profile", "chain", "provider", "transport", "kind", "node"];

/** Workers tell of the same change within this time. */
const SAME_MS = 10_000;

/**
 * One more change among others, newest first. An event is a duplicate if the same was told of the
 * same subject just before or after: once remembered and once live, or by two workers.
 */
export function withChange(
  before: readonly Change[],
  change: Change,
  most: number,
): readonly Change[] {
  const ofSubject = before.filter(({ subject }) => subject === change.subject);
  const neighbours = [
    ofSubject.find(({ at }) => at <= change.at),
    ofSubject.findLast(({ at }) => at > change.at),
  ];
  const isKnown = neighbours.some(
    (other) =>
      other?.text === change.text &&
      Math.abs(Date.parse(other.at) - Date.parse(change.at)) < SAME_MS,
  );
  if (isKnown) return before;
  return [change, ...before]
    .sort((left, right) => Date.parse(right.at) - Date.parse(left.at))
    .slice(0, most);
}

function changeIn(name: string, fields: Fields): Change | null {
  if (!Object.hasOwn(SENTENCES, name)) return null;
  const said = SENTENCES[name]?.(fields, text(fields, "provider"));
  if (said === undefined) return null;
  const at = text(fields, "at");
  const place = [text(fields, "profile"), text(fields, "chain")];
  return {
    id: [at, said.text, ...place].join(" "),
    at,
    subject: JSON.stringify([name, ...SUBJECT.map((field) => text(fields, field))]),
    ...said,
    profile: "profile" in fields ? text(fields, "profile") : null,
    chain: "chain" in fields ? text(fields, "chain") : null,
  };
}

/** What opens a circuit, and what takes a provider out of use. */
const CAUSES: Readonly<Record<string, string>> = {
  server: "server errors",
  network: "network errors",
  timeout: "timeouts",
  unsent: "no connection",
  ...CORDONS,
};

function causeText(cause: string): string {
  return CAUSES[cause] ?? cause.replaceAll("_", " ");
}

type Said = Pick<Change, "tone" | "text">;

/** What each kind of event says. */
const SENTENCES: Readonly<Record<string, (fields: Fields, provider: string) => Said>> = {
  circuit: (fields, provider) => {
    const cause = text(fields, "cause");
    const why = cause === "" ? "" : ` (${causeText(cause)})`;
    return fields["state"] === "open"
      ? { tone: "bad", text: `Circuit of ${provider} opened${why}` }
      : { tone: "good", text: `Circuit of ${provider} closed` };
  },
  cordon: (fields, provider) =>
    fields["cordoned"] === true
      ? { tone: "warn", text: `${provider} was cordoned (${causeText(text(fields, "cause"))})` }
      : { tone: "good", text: `${provider} is no longer cordoned` },
  head: ({ lag_blocks: lag, behind }, provider) => {
    const blocks = typeof lag === "number" ? ` by ${count(lag)} blocks` : "";
    return behind === true
      ? { tone: "warn", text: `${provider} fell behind${blocks}` }
      : { tone: "good", text: `${provider} caught up` };
  },
  stream: (fields) => {
    const to = text(fields, "to");
    const where = to === "" ? "found no provider" : `went on at ${to}`;
    return { tone: "idle", text: `A stream of ${text(fields, "kind")} ${where}` };
  },
  config: () => ({ tone: "idle", text: "The configuration was reloaded" }),
  node: (fields) =>
    fields["change"] === "joined"
      ? { tone: "good", text: `${text(fields, "node")} joined` }
      : { tone: "warn", text: `${text(fields, "node")} left` },
};

function text(fields: Fields, name: string): string {
  return textIn(fields[name]);
}
