// What a worker knows of incidents: the latest view of the process that judges, for pages, metrics
// and the live feed.
import type { EventFeed } from "../feed/event-feed.ts";
import type { Incident } from "./incident.ts";
import type { IncidentView, JudgedState } from "./incident-book.ts";

/** The incidents of now. */
export class CurrentIncidents {
  readonly #feed: Pick<EventFeed, "emit">;
  #view: IncidentView | null = null;
  #states: ReadonlyMap<string, JudgedState> = new Map();

  constructor(feed: Pick<EventFeed, "emit">) {
    this.#feed = feed;
  }

  /** How often incidents were opened, by cause; null = nothing is known yet. */
  get opened(): IncidentView["opened"] | null {
    return this.#view?.opened ?? null;
  }

  /** Takes what is known after a step, and passes on what changed. */
  receive(view: IncidentView): void {
    this.#view = view;
    this.#states = new Map(
      view.providers.map((each) => [keyOf(each.profile, each.chain, each.provider), each]),
    );
    for (const incident of view.changed) this.#emit(incident);
  }

  /** How a provider is; null = it was not judged yet. */
  stateOf(profile: string, chain: string, provider: string): JudgedState | null {
    return this.#states.get(keyOf(profile, chain, provider)) ?? null;
  }

  #emit({ id, profile, chain, provider, cause, words, startedMs, endedMs, users }: Incident): void {
    this.#feed.emit({
      type: "incident",
      data: {
        ...{ profile, chain, cause, words, users },
        incident: id,
        change: endedMs === null ? "opened" : "closed",
        provider: provider?.id ?? null,
        started_at: new Date(startedMs).toISOString(),
        ended_at: endedMs === null ? null : new Date(endedMs).toISOString(),
      },
    });
  }
}

function keyOf(profile: string, chain: string, provider: string): string {
  return `${profile} ${chain} ${provider}`;
}
