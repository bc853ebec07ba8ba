// The data that metrics are read from: facts of the instance, and the health of every provider on
// every transport, read once per scrape. Shows real provider ids only to operators.
import type { MeteredCu } from "../core/billing/charging.ts";
import type { ClusterHealth } from "../core/cluster-health.ts";
import { type Provider, transportsOf } from "../core/provider/profile.ts";
import type { MethodTable } from "../core/rpc/method-table.ts";
import type { PaymentGauges } from "../payments/payments.ts";
import type { SessionGauges } from "../payments/session/sessions.ts";
import type { CacheReport } from "../upstream/engine/cache/cached-answers.ts";
import type { Filters } from "../upstream/filter/filters.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import type { SubscriptionReport, Subscriptions } from "../upstream/stream/subscriptions.ts";
import type { SocketReport } from "../upstream/transport.ts";
import type { CurrentIncidents } from "./incidents/current-incidents.ts";
import type { Observer } from "./observer.ts";

/** Sources of the numbers of subscriptions, filters and provider sockets. */
export interface StreamFacts {
  readonly subscriptions: Pick<Subscriptions, "reports" | "counts" | "checks">;
  readonly filters: Pick<Filters, "counts" | "unreadBytes">;
  readonly socketOf: (provider: Provider) => SocketReport;
}

/** A node in labels: its name for operators, its alias for others. */
export interface NodeLabels {
  readonly id: string;
  readonly region: string;
}

/** Sources of all numbers. */
export interface MetricFacts extends StreamFacts {
  readonly registry: Pick<ProfileRegistry, "profiles">;
  readonly observer: Pick<
    Observer,
    | "allSeries"
    | "batches"
    | "handshakes"
    | "pipelinedAgain"
    | "reasks"
    | "returnsTwice"
    | "sockets"
    | "splits"
    | "unplaced"
  >;
  readonly legacyForms: { readonly counts: () => Iterable<readonly [form: string, n: number]> };
  /** The current method table. */
  readonly methods: () => Pick<MethodTable, "labels">;
  /** Null = payments are off. */
  readonly payments: () => PaymentGauges | null;
  /** Null = pay-per-call is off. */
  readonly sessions: () => SessionGauges | null;
  /** Null or absent = nobody is metered. */
  readonly metered?: () => MeteredCu | null;
  /** Labels of every series where several nodes serve together; null = this one serves alone. */
  readonly node: NodeLabels | null;
  /** Null = this node serves alone. */
  readonly cluster: () => ClusterHealth | null;
  /** Absent = nothing is kept. */
  readonly cache?: () => CacheReport;
  readonly uptimeMs: number;
  readonly residentBytes: number;
  readonly cpuSeconds: number;
  readonly inFlightBytes: number;
  readonly version: string;
  /** True = the reader is an operator, who sees the ids of managed pools. */
  readonly realIds: boolean;
  readonly incidents: Pick<CurrentIncidents, "stateOf" | "opened">;
}

/** One provider of a profile on one chain and transport. */
export type ProviderReading = ReturnType<typeof providersOf>[number];

/** The sources, with what several metrics share already read. */
export interface Readings extends MetricFacts {
  readonly providers: readonly ProviderReading[];
  readonly reports: readonly SubscriptionReport[];
  /** Of the providers with limits, with the labels `profile`, `chain` and `provider`. */
  readonly budgets: ReturnType<typeof budgetsOf>;
}

/** Reads what several metrics share. */
export function takeReadings(facts: MetricFacts): Readings {
  return {
    ...facts,
    providers: providersOf(facts),
    reports: facts.subscriptions.reports(),
    budgets: budgetsOf(facts),
  };
}

/** The tracker of every profile and chain, with the values of the labels `profile` and `chain`. */
export function trackersOf({ profiles }: MetricFacts["registry"]) {
  return profiles.flatMap(({ profile, trackers }) =>
    Array.from(trackers.values(), (tracker) => ({
      profile,
      tracker,
      labels: [profile.slug, tracker.set.chain.chainName],
    })),
  );
}

/** What operators bought of their vendors is theirs to see. */
function budgetsOf({ registry, realIds }: MetricFacts) {
  if (!realIds) return [];
  return trackersOf(registry).flatMap(({ tracker, labels }) =>
    tracker.set.providers.flatMap((provider) => {
      const budget = tracker.budget(provider);
      return budget === null ? [] : [{ labels: [...labels, provider.id], budget }];
    }),
  );
}

/** How each provider is judged, with the labels `profile`, `chain`, `provider` and `state`. */
export function providerStates({ registry, realIds, incidents }: MetricFacts) {
  return trackersOf(registry).flatMap(({ profile, tracker, labels }) =>
    tracker.set.providers.flatMap(({ id, alias }) => {
      const judged = incidents.stateOf(profile.slug, tracker.set.chain.chainName, id);
      const name = profile.managed && !realIds ? alias : id;
      return judged === null ? [] : [[...labels, name, judged.state]];
    }),
  );
}

function providersOf({ registry, socketOf, realIds }: MetricFacts) {
  return trackersOf(registry).flatMap(({ profile, tracker, labels }) =>
    tracker.set.providers.flatMap((provider) => {
      const name = profile.managed && !realIds ? provider.alias : provider.id;
      return transportsOf(provider).map((transport) => ({
        /** Values of the labels `profile`, `chain`, `provider` and `transport`. */
        labels: [...labels, name, transport],
        health: tracker.health(provider, transport),
        /** Null on HTTP. */
        socket: transport === "ws" ? socketOf(provider) : null,
      }));
    }),
  );
}
