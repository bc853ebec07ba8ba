// Follows every configured provider from step to step, in the process that keeps history: opens an
// incident when something is wrong, keeps it open until all was well for five minutes, and says in
// which state each provider is. Bounded: providers that are configured no more are forgotten, and
// of closed incidents the latest are kept. Knows no clock.
import { setNewest } from "../../core/newest.ts";
import { MAX_CALLERS, MAX_LABELS, type ProviderFailures } from "../history/failure-counts.ts";
import type { CountedStep } from "../history/history-counts.ts";
import type { ChainEvidence } from "../history/step-evidence.ts";
import { CLOSE_MS, failureWords, type Incident, MAX_CLOSED } from "./incident.ts";
import {
  type Finding,
  FLAG_STEPS,
  INCIDENT_CAUSES,
  type IncidentCause,
  type JudgedProvider,
  judge,
  PROVIDER_CAUSES,
  type ProviderCondition,
  WINDOW_STEPS,
} from "./judge.ts";
import { answeredShare, judgedProvider, ProviderStep } from "./provider-watch.ts";

/** How one provider is. */
export interface JudgedState {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
  readonly state: ProviderCondition;
  readonly sinceMs: number;
  /** Null = there is nothing to say. */
  readonly words: string | null;
  /** The share of attempts of the last minute that it answered; null = there were none. */
  readonly answered: number | null;
}

/** What is known after a step. */
export interface IncidentView {
  readonly providers: readonly JudgedState[];
  readonly open: readonly Incident[];
  /** Incidents that were opened or closed in the step. */
  readonly changed: readonly Incident[];
  /** How many were opened since the start. */
  readonly opened: Readonly<Record<IncidentCause, number>>;
}

/** A provider of which nothing is heard for so long is configured no more. */
const UNHEARD_MS = 60_000;

type Subject = Pick<Incident, "profile" | "chain" | "provider">;

/** An incident while it is open. */
class OpenIncident {
  readonly #subject: Subject;
  readonly #cause: IncidentCause;
  readonly #id: string;
  readonly #startedMs: number;
  readonly #labels = new Map<string, number>();
  readonly #callers = new Set<string>();
  #state: ProviderCondition | null = null;
  #words: string | null = null;
  #attempts = 0;
  #failed = 0;
  #failedCalls = 0;
  goodSinceMs: number | null = null;

  constructor(subject: Subject, cause: IncidentCause, id: string, startedMs: number) {
    this.#subject = subject;
    this.#cause = cause;
    this.#id = id;
    this.#startedMs = startedMs;
  }

  /** It is bad still, or again; a chain has nothing to say but that. */
  renew(finding?: Extract<Finding, { readonly kind: "bad" }>): void {
    this.goodSinceMs = null;
    this.#state = finding?.state ?? null;
    this.#words = finding?.words ?? null;
  }

  /** Adds what was counted of its provider in a step; one without a failure is of good times. */
  count({ counts: { attempts, limited, broken }, failures }: ProviderStep): void {
    if (limited + broken + failures.length === 0) return;
    this.#attempts += attempts;
    this.#failed += limited + broken;
    for (const each of failures) this.#countFailures(each);
  }

  #countFailures({ labels, calls, callers }: ProviderFailures): void {
    this.#failedCalls += calls;
    for (const caller of callers) if (this.#callers.size < MAX_CALLERS) this.#callers.add(caller);
    for (const { label, isLimit, count } of labels) {
      if (isLimit !== (this.#cause === "limited")) continue;
      const known = this.#labels.get(label);
      if (known !== undefined || this.#labels.size < MAX_LABELS)
        this.#labels.set(label, (known ?? 0) + count);
    }
  }

  /** As it is now, or as it was at its end. */
  view(endedMs: number | null = null): Incident {
    const isCounted = this.#cause === "failing" || this.#cause === "limited";
    const counted = isCounted ? failureWords(this.#attempts, this.#labels) : null;
    const known = [counted, this.#words].filter((words) => words !== null);
    return {
      ...this.#subject,
      id: this.#id,
      cause: this.#cause,
      state: this.#state,
      words: known.join(", ") || UNCOUNTED[this.#cause],
      startedMs: this.#startedMs,
      endedMs,
      goodSinceMs: endedMs === null ? this.goodSinceMs : null,
      attempts: this.#attempts,
      failed: this.#failed,
      failedCalls: this.#failedCalls,
      users: this.#callers.size,
    };
  }
}

/** What there is to say where no failed attempt was counted. */
const UNCOUNTED: Readonly<Record<IncidentCause, string>> = {
  failing: "its circuit is open",
  limited: "rate-limited",
  lagging: "behind",
  slow: "slow",
  stalled: "no new block",
};

/** A provider, or a chain, with its open incidents. */
class Watched {
  readonly subject: Subject;
  readonly open = new Map<IncidentCause, OpenIncident>();
  /** The latest last; the last one is being added to. */
  steps: ProviderStep[] = [new ProviderStep()];
  heardMs: number;
  state: ProviderCondition = "good";
  sinceMs: number;

  constructor(subject: Subject, nowMs: number) {
    this.subject = subject;
    this.heardMs = nowMs;
    this.sinceMs = nowMs;
  }

  get present(): ProviderStep {
    const step = this.steps.at(-1) ?? new ProviderStep();
    if (this.steps.length === 0) this.steps.push(step);
    return step;
  }
}

/** A chain, and when its head last rose. */
interface WatchedChain {
  readonly watched: Watched;
  head: number;
  roseMs: number;
  stalledMs: number;
}

/** The incidents of a service. */
export class IncidentBook {
  readonly #newId: (nowMs: number) => string;
  readonly #providers = new Map<string, Watched>();
  readonly #chains = new Map<string, WatchedChain>();
  /** By their ids, the first closed first. */
  readonly #closed = new Map<string, Incident>();
  readonly #opened = Object.fromEntries(INCIDENT_CAUSES.map((cause) => [cause, 0])) as Record<
    IncidentCause,
    number
  >;
  #changed: Incident[] = [];
  #lastMs: number;

  constructor(newId: (nowMs: number) => string, nowMs: number) {
    this.#newId = newId;
    this.#lastMs = nowMs;
  }

  /** All that is kept. */
  list(): readonly Incident[] {
    return [...this.#open(), ...this.#closed.values()];
  }

  /** Adds what a process counted, to the step that runs. */
  add({ rows, evidence }: CountedStep, nowMs: number): void {
    if (evidence === undefined) return;
    for (const chain of evidence.chains) this.#know(chain, nowMs);
    for (const { profile, chain, provider, ...row } of rows)
      if (provider !== null) this.#find(profile, chain, provider.id)?.present.add(row);
    for (const each of evidence.failures)
      this.#find(each.profile, each.chain, each.provider)?.present.failures.push(each);
  }

  /** Ends the step, and judges all. */
  evaluate(nowMs: number): IncidentView {
    this.#changed = [];
    for (const peers of this.#sets().values()) {
      const judged = new Map(peers.map((each) => [each, judgedProvider(each.steps)]));
      for (const [watched, own] of judged) {
        const others = peers.flatMap((each) => (each === watched ? [] : (judged.get(each) ?? [])));
        this.#follow(watched, own, others, nowMs);
      }
    }
    for (const [key, chain] of this.#chains) this.#followChain(key, chain, nowMs);
    this.#lastMs = nowMs;
    return {
      providers: Array.from(this.#providers.values(), judgedStateOf),
      open: this.#open(),
      changed: this.#changed,
      opened: { ...this.#opened },
    };
  }

  #open(): Incident[] {
    const all = [...this.#providers.values(), ...this.#watchedChains()];
    return all.flatMap(({ open }) => Array.from(open.values(), (incident) => incident.view()));
  }

  #watchedChains(): readonly Watched[] {
    return Array.from(this.#chains.values(), ({ watched }) => watched);
  }

  #find(profile: string, chain: string, provider: string): Watched | undefined {
    return this.#providers.get(`${profile} ${chain} ${provider}`);
  }

  #know({ profile, chain, providers, ...of }: ChainEvidence, nowMs: number): void {
    const key = `${profile} ${chain}`;
    const { head, stalledMs, maxLagBlocks } = of;
    const known = this.#chains.get(key) ?? {
      watched: new Watched({ profile, chain, provider: null }, nowMs),
      head: -1,
      roseMs: nowMs,
      stalledMs,
    };
    known.watched.heardMs = nowMs;
    known.stalledMs = stalledMs;
    if (head !== null && head > known.head) {
      known.head = head;
      known.roseMs = nowMs;
    }
    this.#chains.set(key, known);
    for (const evidence of providers) {
      const { id, alias } = evidence.provider;
      const subject = { profile, chain, provider: { id, alias } };
      const watched = this.#find(profile, chain, id) ?? new Watched(subject, nowMs);
      watched.heardMs = nowMs;
      watched.present.know(evidence, maxLagBlocks);
      this.#providers.set(`${key} ${id}`, watched);
    }
  }

  /** The providers of each profile on a chain, those that are configured. */
  #sets(): Map<string, readonly Watched[]> {
    return Map.groupBy(
      this.#providers.values(),
      ({ subject }) => `${subject.profile} ${subject.chain}`,
    );
  }

  #follow(
    watched: Watched,
    own: JudgedProvider,
    others: readonly JudgedProvider[],
    nowMs: number,
  ): void {
    const isGone = nowMs - watched.heardMs > UNHEARD_MS;
    if (isGone || own.exclusion === "operator") {
      for (const cause of [...watched.open.keys()]) this.#close(watched, cause, nowMs);
    } else {
      const findings = judge(own, others);
      for (const cause of PROVIDER_CAUSES) this.#record(watched, cause, findings[cause], nowMs);
    }
    const { subject } = watched;
    if (isGone)
      this.#providers.delete(`${subject.profile} ${subject.chain} ${subject.provider?.id}`);
    const state = stateOf(watched, own);
    if (state !== watched.state) watched.sinceMs = this.#stateSince(watched, state, nowMs);
    watched.state = state;
    watched.steps = [...watched.steps, new ProviderStep()].slice(-FLAG_STEPS - 1);
  }

  /** A bad state began with what was seen first of it. */
  #stateSince(watched: Watched, state: ProviderCondition, nowMs: number): number {
    const incidents = Array.from(watched.open.values(), (incident) => incident.view());
    return incidents.find((each) => each.state === state)?.startedMs ?? nowMs;
  }

  #followChain(key: string, chain: WatchedChain, nowMs: number): void {
    const { watched, head, roseMs, stalledMs } = chain;
    if (nowMs - watched.heardMs > UNHEARD_MS) {
      if (watched.open.size > 0) this.#close(watched, "stalled", nowMs);
      this.#chains.delete(key);
      return;
    }
    if (head === -1) return;
    const isStalled = nowMs - roseMs > stalledMs;
    const open = watched.open.get("stalled");
    if (!isStalled) return open && this.#good(watched, "stalled", open, nowMs);
    if (open !== undefined) return open.renew();
    this.#start(watched, "stalled", roseMs).renew();
    this.#note(watched, "stalled");
  }

  #record(watched: Watched, cause: IncidentCause, finding: Finding, nowMs: number): void {
    const known = watched.open.get(cause);
    if (finding.kind === "good" && known !== undefined)
      return this.#good(watched, cause, known, nowMs);
    known?.count(watched.present);
    if (finding.kind !== "bad") return;
    if (known !== undefined) return known.renew(finding);
    const window = watched.steps.slice(-WINDOW_STEPS);
    const first = Math.max(
      0,
      window.findIndex(({ isSuspect }) => isSuspect),
    );
    const stepMs = nowMs - this.#lastMs;
    const incident = this.#start(watched, cause, nowMs - (window.length - first) * stepMs);
    for (const step of window.slice(first)) incident.count(step);
    incident.renew(finding);
    this.#note(watched, cause);
  }

  #start(watched: Watched, cause: IncidentCause, startedMs: number): OpenIncident {
    const id = this.#newId(startedMs);
    const incident = new OpenIncident(watched.subject, cause, id, startedMs);
    watched.open.set(cause, incident);
    this.#opened[cause]++;
    return incident;
  }

  /** All was well in this step: closes an incident when that has held for long. */
  #good(watched: Watched, cause: IncidentCause, open: OpenIncident, nowMs: number): void {
    open.goodSinceMs ??= this.#lastMs;
    if (nowMs - open.goodSinceMs >= CLOSE_MS) this.#close(watched, cause, open.goodSinceMs);
  }

  #close(watched: Watched, cause: IncidentCause, endedMs: number): void {
    const incident = watched.open.get(cause)?.view(endedMs);
    watched.open.delete(cause);
    if (incident === undefined) return;
    setNewest(this.#closed, incident.id, incident, MAX_CLOSED);
    this.#changed.push(incident);
  }

  #note(watched: Watched, cause: IncidentCause): void {
    const incident = watched.open.get(cause)?.view();
    if (incident !== undefined) this.#changed.push(incident);
  }
}

function judgedStateOf({ subject, state, sinceMs, open, steps }: Watched): JudgedState {
  const { profile, chain, provider } = subject;
  const cause = PROVIDER_CAUSES.find((each) => open.has(each));
  const words =
    state === "maintenance" ? "cordoned by the operator" : cause && open.get(cause)?.view().words;
  return {
    ...{ profile, chain, state, sinceMs },
    provider: provider?.id ?? "",
    words: words ?? null,
    answered: answeredShare(steps),
  };
}

function stateOf({ open }: Watched, own: JudgedProvider): ProviderCondition {
  if (own.exclusion === "operator") return "maintenance";
  const failing = open.get("failing");
  // Good again: it is no longer down, and its state ends with its incident once calls are sent.
  if (failing !== undefined && failing.goodSinceMs !== null)
    return own.window.attempts === 0 ? "recovered" : "failing";
  for (const cause of PROVIDER_CAUSES) {
    const state = open.get(cause)?.view().state;
    if (state) return state;
  }
  if (!own.hasAnswered) return "never_answered";
  return own.circuit === "recovered" ? "recovered" : "good";
}
