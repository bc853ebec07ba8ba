// What an event of the feed says, as a sentence. Pure.

import type { AnswerOf } from "../../api/contract-types.ts";
import type { StreamEvent } from "../../api/feed.ts";
import { parseJson, textIn } from "../../api/json.ts";
import { duration } from "../../format/text.ts";
import type { Tone } from "../../format/tone.ts";

/** Something that changed. */
export interface Change {
  readonly id: string;
  readonly at: string;
  readonly tone: Tone;
  readonly text: string;
  /** Of what it tells: the same for all changes of one circuit, or of one cause. */
  readonly subject: string;
  /** What became of that: told twice in the same moment, it is one change. */
  readonly what: string;
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

const SUBJECT = ["profile", "chain", "provider", "transport", "node"];
/** An incident of a provider in two profiles is one. */
const SUBJECT_OF_INCIDENT = ["chain", "provider", "cause"];

/** Workers, and the profiles of a provider, tell of the same change within this time. */
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
      other?.what === change.what &&
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
  if (said == null) return null;
  const at = text(fields, "at");
  const place = [text(fields, "profile"), text(fields, "chain")];
  const isIncident = name === "incident";
  const subject = isIncident ? SUBJECT_OF_INCIDENT : SUBJECT;
  return {
    id: [at, said.text, ...place].join(" "),
    at,
    subject: JSON.stringify([name, ...subject.map((field) => text(fields, field))]),
    what: isIncident ? text(fields, "change") : said.text,
    ...said,
    profile: "profile" in fields ? text(fields, "profile") : null,
    chain: "chain" in fields ? text(fields, "chain") : null,
  };
}

type Said = Pick<Change, "tone" | "text">;

/**
 * What each kind of event says. Circuits, heads and refusals of single providers are part of
 * incidents.
 */
const SENTENCES: Readonly<Record<string, (fields: Fields, provider: string) => Said | null>> = {
  incident: (fields, provider) => {
    const subject = provider === "" ? "The chain" : provider;
    const words = text(fields, "words");
    if (fields["change"] === "opened") return { tone: "bad", text: `${subject}: ${words}` };
    const lastedMs = Date.parse(text(fields, "ended_at")) - Date.parse(text(fields, "started_at"));
    return { tone: "good", text: `${subject} is good again after ${duration(lastedMs)}: ${words}` };
  },
  cordon: (fields, provider) => {
    if (text(fields, "cause") !== "operator") return null;
    return fields["cordoned"] === true
      ? { tone: "warn", text: `${provider} was cordoned by the operator` }
      : { tone: "good", text: `${provider} is no longer cordoned` };
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
