// The budgets of all providers that have limits, by the provider that is asked. A reload keeps what
// was counted of a provider. Decides nothing.
import type { Provider } from "../../core/provider/profile.ts";
import type { Runtime } from "../../runtime.ts";
import { type Shares, WHOLE_SHARES } from "../worker-shares.ts";
import { ProviderBudget } from "./provider-budget.ts";
import type { QuotaSource } from "./quota-source.ts";

/** Finds the budgets of providers. */
export interface ProviderBudgets {
  /** The budget of a provider of a set, which is created where it is new; null = no limits. */
  open(set: string, provider: Provider): ProviderBudget | null;
  /** The budget of a provider that was opened; null = it has no limits. */
  find(provider: Provider): ProviderBudget | null;
  /** Forgets the budgets of all others. */
  retain(providers: readonly Provider[]): void;
  /** Ends when every budget has the credits that it asked for at first. */
  ready(): Promise<void>;
  /** Gives back what was not spent. */
  close(): void;
}

/** What budgets work with. */
export interface ProviderBudgetsParts {
  readonly runtime: Pick<Runtime, "now" | "wallMs" | "after">;
  /** Credits of days and months. */
  readonly quotas: QuotaSource;
  /** Absent = this process is the whole service. */
  readonly shares?: Shares;
}

/** Creates budgets. */
export function createProviderBudgets(parts: ProviderBudgetsParts): ProviderBudgets {
  const { runtime, quotas, shares = WHOLE_SHARES } = parts;
  const byKey = new Map<string, ProviderBudget>();
  const byProvider = new WeakMap<Provider, ProviderBudget>();
  return {
    open(set, provider) {
      const { budget: limits } = provider;
      if (limits === null) return null;
      const key = `${set} ${provider.id}`;
      const known = byKey.get(key);
      const budget =
        known ??
        new ProviderBudget(limits, {
          key,
          runtime,
          quotas,
          shareOf: (what, total, use) => shares.of(`${what} ${key}`, total, use),
        });
      known?.change(limits);
      byKey.set(key, budget);
      byProvider.set(provider, budget);
      return budget;
    },
    find: (provider) => byProvider.get(provider) ?? null,
    retain(providers) {
      const used = new Set(providers.map((provider) => byProvider.get(provider)));
      for (const [key, budget] of byKey) {
        if (used.has(budget)) continue;
        byKey.delete(key);
        budget.close();
      }
    },
    async ready() {
      await Promise.all([...byKey.values()].map(({ pending }) => pending));
    },
    close() {
      for (const budget of byKey.values()) budget.close();
    },
  };
}
