// The words and colours of what the service judges of providers and incidents, and one line on a
// chain and on the service. Pure: the same state gets the same words on every page.

import type { AnswerOf } from "../api/contract-types.ts";
import { count, duration, plural, textList } from "../format/text.ts";
import { type Tone, worstTone } from "../format/tone.ts";

/** A state in a word, with its colour. */
interface Word {
  readonly tone: Tone;
  readonly word: string;
}

/** What the API tells of a chain. */
export type ChainMetrics = AnswerOf<"GET /api/metrics/{chain}">;
/** A profile on a chain. */
export type ProfileMetrics = ChainMetrics["profiles"][number];
/** A provider of a profile. */
export type ProviderMetrics = ProfileMetrics["providers"][number];
/** A provider where it stands. */
export interface ProviderPlace {
  readonly profile: string;
  readonly chain: string;
  readonly provider: ProviderMetrics;
}
/** A provider over one transport. */
export type TransportMetrics = ProviderMetrics["transports"][number];
/** Whether the service can serve. */
export type Readiness = AnswerOf<"GET /api/ready">;

/** An incident, as the API tells of it. */
export type Incident = AnswerOf<"GET /api/v1/incidents">["incidents"][number];

/** What the state of a provider is called, and its colour. */
export const STATES = {
  good: { tone: "good", word: "Good" },
  recovered: { tone: "good", word: "Recovered, waiting for traffic" },
  never_answered: { tone: "idle", word: "Never answered" },
  slow: { tone: "warn", word: "Slow" },
  lagging: { tone: "warn", word: "Lagging" },
  limited: { tone: "warn", word: "Limited" },
  failing: { tone: "bad", word: "Failing" },
  down: { tone: "bad", word: "Down" },
  maintenance: { tone: "idle", word: "Maintenance" },
} as const satisfies Readonly<Record<NonNullable<ProviderMetrics["state"]>, Word>>;
const UNJUDGED = { tone: "idle", word: "Not judged yet" } as const;
/** A chain that has an incident of its own. */
const STALLED = { tone: "bad", word: "Stalled" } as const;

/** How a provider is, in a word. */
export function stateWord({ state }: Pick<ProviderMetrics, "state">): Word {
  return state === null ? UNJUDGED : STATES[state];
}

/** What needs somebody first; maintenance, and what is not known, before what is good. */
const SEVERITY: readonly Tone[] = ["bad", "warn", "idle", "good"];

/** The places of a provider, those first where it does worst. */
export function worstPlaces(places: readonly ProviderPlace[]): readonly ProviderPlace[] {
  const severityOf = ({ provider }: ProviderPlace): number =>
    SEVERITY.indexOf(stateWord(provider).tone);
  return places.toSorted((left, right) => severityOf(left) - severityOf(right));
}

/** How many providers are in each state, as "3 good, 1 failing". */
export function stateCounts(providers: readonly Pick<ProviderMetrics, "state">[]): string {
  const states = [...Object.keys(STATES), null].map((name) => {
    const found = providers.filter(({ state }) => state === name).length;
    return found > 0 && `${count(found)} ${(name ?? "not judged yet").replaceAll("_", " ")}`;
  });
  return textList(states);
}

/**
 * The incidents that are open, the worst first and then those that began last. What one provider
 * does in several profiles is one.
 */
export function openIncidents(incidents: readonly Incident[]): readonly Incident[] {
  const groups = Map.groupBy(
    incidents.filter(({ ended_at: end }) => end === null),
    ({ chain, provider, cause }) => `${chain} ${provider ?? ""} ${cause}`,
  );
  const open = [...groups.values()].flatMap(joined);
  const isBad = (incident: Incident): boolean => incidentWord(incident).tone === "bad";
  return [...open.filter(isBad), ...open.filter((incident) => !isBad(incident))];
}

/** One incident of those that several profiles have, in the words of the one with most attempts. */
function joined(incidents: readonly Incident[]): readonly Incident[] {
  const most = incidents.toSorted((left, right) => right.attempts - left.attempts)[0];
  if (most === undefined) return [];
  const sumOf = (count: (incident: Incident) => number): number =>
    incidents.reduce((sum, incident) => sum + count(incident), 0);
  return [
    {
      ...most,
      started_at: incidents.map((each) => each.started_at).toSorted()[0] ?? most.started_at,
      good_since: incidents.some((each) => each.good_since === null) ? null : most.good_since,
      attempts: sumOf(({ attempts }) => attempts),
      failed: sumOf(({ failed }) => failed),
      failed_calls: sumOf(({ failed_calls: calls }) => calls),
      users: Math.max(...incidents.map(({ users }) => users)),
    },
  ];
}

/** What an incident makes of its provider or chain, in a word. */
export function incidentWord({ state }: Pick<Incident, "state">): Word {
  return state === null ? STALLED : STATES[state];
}

/** What the circuit of a provider over one transport is called, and its colour in a band. */
export const CIRCUITS = {
  closed: { tone: "good", word: "Closed" },
  recovered: { tone: "good", word: "Recovered" },
  never_answered: { tone: "idle", word: "Never answered" },
  half_open: { tone: "warn", word: "Half-open" },
  open: { tone: "bad", word: "Open" },
  cordoned: { tone: "idle", word: "Cordoned" },
} as const satisfies Readonly<Record<string, Word>>;
/** Why a provider is taken out of use, by the names of the API. */
const CORDONS: Readonly<Record<string, string>> = {
  auth: "credentials refused",
  quota: "quota used up",
  wrong_chain: "answers for another chain",
  operator: "by the operator",
};

/** What holds calls of one transport back now. */
export function transportNotes(transport: TransportMetrics): readonly string[] {
  const { circuit_breaker_state: circuit, half_open_in_ms: trialInMs } = transport;
  const { cordoned, rate_limited_for_ms: limitedMs } = transport;
  const notes: string[] = [];
  if (cordoned !== null) notes.push(`cordoned: ${CORDONS[cordoned] ?? cordoned}`);
  if (circuit === "open")
    notes.push(`circuit open${trialInMs === null ? "" : `, trial in ${duration(trialInMs)}`}`);
  if (circuit === "half_open") notes.push("circuit half-open: one trial at a time");
  if (limitedMs > 0) notes.push(`rate-limited for ${duration(limitedMs)}`);
  if (transport.socket?.state === "waiting") notes.push("waiting to reconnect");
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

/** States of providers to which no calls go. */
const GONE: ReadonlySet<ProviderMetrics["state"]> = new Set([
  "never_answered",
  "down",
  "maintenance",
]);

/** Calls go to it; before it is judged, where it has answered and is not excluded. */
function isServing({ state, transports }: ProviderMetrics): boolean {
  if (state !== null) return !GONE.has(state);
  return transports.some(
    (transport) =>
      hasAnswered(transport) &&
      transport.circuit_breaker_state !== "open" &&
      transport.cordoned === null,
  );
}

/** One line on a profile on a chain. */
export interface ProfileVerdict {
  readonly tone: Tone;
  readonly words: string;
  /** Some provider takes calls, well or badly. */
  readonly served: boolean;
  readonly usable: number;
  readonly providers: number;
  readonly calls: number;
  readonly head: number | null;
}

/** How a profile does on a chain. `isStalled`: the chain has an open incident of its own. */
export function summarise(profile: ProfileMetrics, isStalled = false): ProfileVerdict {
  const { providers, subscriptions, calls, head_block: head } = profile;
  const serving = providers.filter(isServing);
  const usable = serving.filter(({ state }) => state !== "failing").length;
  const served = serving.length > 0;
  const facts = { served, usable, providers: providers.length, calls, head };
  const tones = providers.map((provider) => stateWord(provider).tone);
  const problems = tones.filter((tone) => tone === "warn" || tone === "bad").length;
  const recovering = subscriptions.streams.filter(({ state }) => state === "recovering").length;
  if (!served) {
    const isOut = providers.length > 0 && providers.every(({ state }) => state === "maintenance");
    const words = isOut ? "All providers are in maintenance" : "No usable provider";
    return { ...facts, tone: "bad", words };
  }
  if (usable === 0) return { ...facts, tone: "bad", words: "All providers fail" };
  if (isStalled) return { ...facts, tone: STALLED.tone, words: "No new block" };
  if (problems > 0) {
    const verb = problems === 1 ? "has" : "have";
    return { ...facts, tone: "warn", words: `${plural(problems, "provider")} ${verb} problems` };
  }
  if (recovering > 0)
    return { ...facts, tone: "warn", words: `${plural(recovering, "subscription")} recovering` };
  return { ...facts, tone: "good", words: "Normal" };
}

/** A profile on a chain, with its line. */
export interface ChainVerdict {
  readonly chain: string;
  readonly verdict: ProfileVerdict;
}

/**
 * One sentence that says how the service is: by the incidents that are open, so that it does not
 * change with every circuit. A chain may be served in several profiles.
 */
export function headline(
  readiness: Readiness | null,
  chains: readonly ChainVerdict[],
  incidents: readonly Incident[],
): { readonly tone: Tone; readonly words: string } {
  if (readiness === null || chains.length === 0)
    return { tone: "idle", words: "Reading the service" };
  if (!readiness.ready) return { tone: "bad", words: `Not ready: ${readiness.reasons.join(", ")}` };
  const names = [...new Set(chains.map(({ chain }) => chain))];
  const all = names.length;
  const dead = names.filter((name) =>
    chains.every(({ chain, verdict }) => chain !== name || !verdict.served),
  ).length;
  if (dead > 0) {
    const subject = all === 1 ? "The chain" : `${count(dead)} of ${plural(all, "chain")}`;
    return { tone: "bad", words: `${subject} ${dead === 1 ? "has" : "have"} no usable provider` };
  }
  const served = all === 1 ? "The chain is served" : `All ${count(all)} chains are served`;
  const [first, ...others] = incidents;
  if (first === undefined) return { tone: "good", words: `${served} normally` };
  const tone = worstTone(incidents.map((incident) => incidentWord(incident).tone));
  const more = others.length === 0 ? "" : `, and ${plural(others.length, "more incident")}`;
  return {
    tone: tone === "bad" ? "bad" : "warn",
    words: `${served}; ${incidentText(first)}${more}`,
  };
}

/** What an incident is about, and its cause. */
function incidentText({ provider, chain, words }: Incident): string {
  return `${provider === null ? chain : `${provider} on ${chain}`}: ${words}`;
}

/** Incidents as stretches of time behind graphs, `most` at most, each stretch once. */
export function bandsOf(incidents: readonly Incident[], most = 50) {
  return incidents.slice(0, most).map((incident) => ({
    from: Date.parse(incident.started_at) / 1_000,
    to: incident.ended_at === null ? null : Date.parse(incident.ended_at) / 1_000,
    tone: incidentWord(incident).tone,
    label: incidentText(incident),
  }));
}

/** What can be done about an incident. */
export function adviceOn({ cause, state }: Pick<Incident, "cause" | "state">): string {
  if (state === "never_answered") return "Check its URL and key";
  return ADVICE[cause];
}

const ADVICE: Readonly<Record<Incident["cause"], string>> = {
  failing: "Its calls go to others; test it, or cordon it",
  limited: "Top up its plan, raise its limit, or declare the limit in the configuration",
  lagging: "Calls about new blocks go to others; ask its operator",
  slow: "Lower its priority or weight, or cordon it",
  stalled: "Check whether the chain itself makes blocks",
};

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
