// Judges providers, chains and the service by what the API tells of them. Pure: the same state gets
// the same words on every page.

import type { AnswerOf } from "../api/contract-types.ts";
import { count, duration, plural, textList } from "../format/text.ts";
import { type Tone, worstTone } from "../format/tone.ts";

/** What the API tells of a chain. */
export type ChainMetrics = AnswerOf<"GET /api/metrics/{chain}">;
/** A profile on a chain. */
export type ProfileMetrics = ChainMetrics["profiles"][number];
/** A provider of a profile. */
export type ProviderMetrics = ProfileMetrics["providers"][number];
/** A provider over one transport. */
export type TransportMetrics = ProviderMetrics["transports"][number];
/** Whether the service can serve. */
export type Readiness = AnswerOf<"GET /api/ready">;

/** A judgement in a word, with what adds to it. */
export interface Verdict {
  readonly tone: Tone;
  readonly word: string;
  readonly notes: readonly string[];
}

/** What the state of a provider over one transport is called, and its colour. */
export const CIRCUITS = {
  closed: { tone: "good", word: "Closed" },
  recovered: { tone: "good", word: "Recovered" },
  never_answered: { tone: "idle", word: "Never answered" },
  half_open: { tone: "warn", word: "Half-open" },
  open: { tone: "bad", word: "Open" },
  cordoned: { tone: "bad", word: "Cordoned" },
} as const satisfies Readonly<Record<string, Pick<Verdict, "tone" | "word">>>;
/** Why a provider is taken out of use, by the names of the API. */
export const CORDONS: Readonly<Record<string, string>> = {
  auth: "credentials refused",
  quota: "quota used up",
  wrong_chain: "answers for another chain",
  operator: "by the operator",
};

/** How a provider does over one transport; with more lag than this it is asked after others. */
export function judgeTransport(transport: TransportMetrics, maxLagBlocks: number): Verdict {
  const circuit = transport.circuit_breaker_state;
  const notes = notesOf(transport, maxLagBlocks);
  const { word } = CIRCUITS[circuit];
  if (transport.cordoned !== null || circuit === "open") return { tone: "bad", word, notes };
  const answered = hasAnswered(transport);
  const more = [
    ...(answered || circuit === "never_answered" ? [] : ["no answer yet"]),
    ...(answered && isSilent(transport) ? ["no height for 30 s"] : []),
  ];
  const calm = answered ? "good" : "idle";
  return { tone: notes.length > 0 ? "warn" : calm, word, notes: [...notes, ...more] };
}

function notesOf(transport: TransportMetrics, maxLagBlocks: number): readonly string[] {
  const { circuit_breaker_state: circuit, lag_blocks: lag, cordoned } = transport;
  const { half_open_in_ms: trialInMs, rate_limited_for_ms: limitedMs } = transport;
  const notes: string[] = [];
  if (cordoned !== null) notes.push(`cordoned: ${CORDONS[cordoned] ?? cordoned}`);
  if (circuit === "open")
    notes.push(trialInMs === null ? "excluded" : `trial in ${duration(trialInMs)}`);
  if (isTroubled(circuit) && (transport.circuit_opened["silence"] ?? 0) > 0)
    notes.push("was silent");
  if (circuit === "half_open") notes.push("one trial at a time");
  if (limitedMs > 0) notes.push(`rate-limited for ${duration(limitedMs)}`);
  if (transport.socket?.state === "waiting") notes.push("waiting to reconnect");
  if (lag !== null && lag > maxLagBlocks) notes.push(`${plural(lag, "block")} behind`);
  return notes;
}

/** Whether calls have opened a circuit, and it has not closed since. */
function isTroubled(circuit: TransportMetrics["circuit_breaker_state"]): boolean {
  return circuit === "open" || circuit === "half_open";
}

/** Whether it ever answered. */
function hasAnswered({ latency_ms: { probe, p50 } }: TransportMetrics): boolean {
  return probe !== null || p50 !== null;
}

/** A known height without a lag is one of more than 30 seconds ago. */
export function isSilent({ block_height: height, lag_blocks: lag }: TransportMetrics): boolean {
  return height !== null && lag === null;
}

/** Whether a transport has anything to tell; the WebSocket of a provider often has not. */
function isUsed(transport: TransportMetrics): boolean {
  return (
    transport.calls > 0 ||
    isTroubled(transport.circuit_breaker_state) ||
    transport.rate_limited_for_ms > 0 ||
    transport.cordoned !== null ||
    transport.socket?.state === "waiting"
  );
}

/** The transports of a provider that deserve a row: the first, and others in use. */
export function shownTransports({ transports }: ProviderMetrics): readonly TransportMetrics[] {
  return transports.filter((transport, at) => at === 0 || isUsed(transport));
}

/** Whether the operator took it out of service. */
function isCordoned({ cordon }: ProviderMetrics): boolean {
  return cordon !== null && cordon !== undefined;
}

/** It has answered before and would be asked now. */
function isUsable(provider: ProviderMetrics): boolean {
  if (isCordoned(provider)) return false;
  return provider.transports.some(
    (transport) =>
      hasAnswered(transport) &&
      transport.circuit_breaker_state !== "open" &&
      transport.cordoned === null,
  );
}

/** How a provider of a profile does. */
export function toneOfProvider(provider: ProviderMetrics, profile: ProfileMetrics): Tone {
  if (isCordoned(provider)) return "bad";
  const verdicts = shownTransports(provider).map((transport) =>
    judgeTransport(transport, profile.max_lag_blocks),
  );
  return worstTone(verdicts.map(({ tone }) => tone));
}

/** One line on a profile on a chain. */
export interface ProfileVerdict {
  readonly tone: Tone;
  readonly words: string;
  readonly usable: number;
  readonly providers: number;
  readonly calls: number;
  readonly head: number | null;
}

/** How a profile does on a chain. */
export function judgeProfile(profile: ProfileMetrics): ProfileVerdict {
  const { providers, subscriptions, calls, head_block: head } = profile;
  const usable = providers.filter(isUsable).length;
  const facts = { usable, providers: providers.length, calls, head };
  const tones = providers.map((provider) => toneOfProvider(provider, profile));
  const problems = tones.filter((tone) => tone === "warn" || tone === "bad").length;
  const recovering = subscriptions.streams.filter(({ state }) => state === "recovering").length;
  if (usable === 0) return { ...facts, tone: "bad", words: "No usable provider" };
  if (problems > 0) {
    const verb = problems === 1 ? "has" : "have";
    return { ...facts, tone: "warn", words: `${plural(problems, "provider")} ${verb} problems` };
  }
  if (recovering > 0)
    return { ...facts, tone: "warn", words: `${plural(recovering, "subscription")} recovering` };
  return { ...facts, tone: "good", words: "Normal" };
}

/** A profile on a chain, judged. */
export interface JudgedChain {
  readonly chain: string;
  readonly verdict: ProfileVerdict;
}

/** One sentence that says how the service is; a chain may be served in several profiles. */
export function headline(
  readiness: Readiness | null,
  judged: readonly JudgedChain[],
): { readonly tone: Tone; readonly words: string } {
  if (readiness === null || judged.length === 0)
    return { tone: "idle", words: "Reading the service" };
  if (!readiness.ready) return { tone: "bad", words: `Not ready: ${readiness.reasons.join(", ")}` };
  const chains = [...new Set(judged.map(({ chain }) => chain))].map((chain) =>
    judged.filter((each) => each.chain === chain).map(({ verdict }) => verdict.tone),
  );
  const all = chains.length;
  const dead = chains.filter((tones) => tones.every((tone) => tone === "bad")).length;
  const partly = chains.filter((tones) => tones.includes("bad")).length - dead;
  const troubled = chains.filter((tones) => tones.includes("warn")).length;
  if (dead > 0) {
    const subject = all === 1 ? "The chain" : `${count(dead)} of ${plural(all, "chain")}`;
    return { tone: "bad", words: `${subject} ${dead === 1 ? "has" : "have"} no usable provider` };
  }
  const served = all === 1 ? "The chain is served" : `All ${count(all)} chains are served`;
  const some = (n: number): string => (all === 1 ? "" : ` ${count(n)} of them`);
  if (partly > 0) return { tone: "bad", words: `${served},${some(partly)} not in every profile` };
  if (troubled > 0) return { tone: "warn", words: `${served},${some(troubled)} with problems` };
  return { tone: "good", words: `${served} normally` };
}

/** What is used of the limits of a provider; only the operator is told. */
export function limitNotes({ limits }: ProviderMetrics): string {
  if (limits === null || limits === undefined) return "";
  const { rps, concurrency, daily, monthly } = limits;
  return textList([
    rps && `${count(rps.in_use)} of ${count(rps.limit)} a second`,
    concurrency && `${count(concurrency.in_use)} of ${count(concurrency.limit)} at once`,
    daily && `${count(daily.left)} of ${count(daily.limit)} credits left today`,
    monthly && `${count(monthly.left)} of ${count(monthly.limit)} left this month`,
    limits.ahead_of_pace && "ahead of its pace: asked after others",
  ]);
}

/** What was learned of a provider from its refusals. */
export function learnedNotes({ learned }: TransportMetrics): string {
  const { unsupported_methods: methods, pruned_resources: pruned } = learned;
  const { max_block_range: range, requests_per_second: rps } = learned;
  return textList([
    range !== null && `at most ${count(range)} blocks of logs`,
    rps !== null && `about ${count(rps)} requests a second`,
    pruned.length > 0 && `has not all old ${pruned.join(", ")}`,
    methods.length > 0 && `does not serve ${methods.join(", ")}`,
  ]);
}
