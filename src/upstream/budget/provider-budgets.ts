// The budgets of all providers that have limits, by the provider that is asked. A reload keeps what
// was counted of a provider. Decides nothing.
import type { Provider } from "../../core/provider/profile.ts";
import { type BudgetParts, ProviderBudget } from "./provider-budget.ts";

/** Finds the budgets of providers. */
export class ProviderBudgets {
  readonly #parts: BudgetParts;
  readonly #byKey = new Map<string, ProviderBudget>();
  readonly #byProvider = new WeakMap<Provider, ProviderBudget>();

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /** The budget of a provider of a set, which is created where it is new; null = no limits. */
  open(set: string, provider: Provider): ProviderBudget | null {
    const { budget: limits } = provider;
    if (limits === null) return null;
    const key = `${set} ${provider.id}`;
    const known = this.#byKey.get(key);
    known?.change(limits);
    const budget = known ?? new ProviderBudget(key, limits, this.#parts);
    this.#byKey.set(key, budget);
    this.#byProvider.set(provider, budget);
    return budget;
  }

  /** The budget of a provider that was opened; null = it has no limits. */
  find(provider: Provider): ProviderBudget | null {
    return this.#byProvider.get(provider) ?? null;
  }

  /** Forgets the budgets of all others. */
  retain(providers: readonly Provider[]): void {
    const used = new Set(providers.map((provider) => this.#byProvider.get(provider)));
    for (const [key, budget] of this.#byKey) {
      if (used.has(budget)) continue;
      this.#byKey.delete(key);
      budget.close();
    }
  }

  /** Ends when every budget has the credits that it asked for at first. */
  async ready(): Promise<void> {
    await Promise.all([...this.#byKey.values()].map(({ pending }) => pending));
  }

  /** Gives back what was not spent. */
  close(): void {
    for (const budget of this.#byKey.values()) budget.close();
  }
}
