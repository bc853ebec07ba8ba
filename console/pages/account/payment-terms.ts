// What `/agent.json` says of payments, as far as the page needs it. Pure.

/** The terms of purchases. */
export interface PaymentTerms {
  readonly minUsd: string;
  readonly maxUsd: string;
  readonly dayUsd: string;
  readonly maxDays: number;
  /** Whether a wallet of a browser can pay here: by EIP-3009. */
  readonly byWallet: boolean;
  /** Whether that is the only way to pay once. */
  readonly byWalletOnly: boolean;
}

/** Reads them; null = nothing can be bought. */
export function readTerms(document: unknown): PaymentTerms | null {
  const payments = memberOf(document, "payments");
  const range = memberOf(payments, "purchase_usd");
  const access = memberOf(payments, "custom_access");
  const rails = memberOf(payments, "rails");
  if (memberOf(payments, "enabled") !== true || !Array.isArray(rails)) return null;
  return {
    minUsd: textOf(memberOf(range, "min")),
    maxUsd: textOf(memberOf(range, "max")),
    dayUsd: textOf(memberOf(access, "usd_per_day")),
    maxDays: Number(memberOf(memberOf(access, "days"), "max")),
    byWallet: rails.some((rail) => memberOf(rail, "kind") === "evm"),
    byWalletOnly: !rails.some((rail) => memberOf(rail, "kind") === "tempo"),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
