// What the console reads of `/agent.json`, which is no operation of the contract.

/** The document. */
export interface AgentDocument {
  readonly chains: readonly { readonly name: string; readonly title: string }[];
  readonly strategies: readonly string[];
  readonly profiles: readonly { readonly slug: string }[];
  /** `keyless_rpc` = calls without a key are served. */
  readonly features: { readonly keyless_rpc: boolean };
  readonly payments: PaymentTerms | { readonly enabled: false };
}

/** The terms of purchases, in US dollars as plain decimals. */
export interface PaymentTerms {
  readonly enabled: true;
  /** `evm` = by EIP-3009, as a wallet of a browser can; `tempo` = as the command can. */
  readonly rails: readonly { readonly kind: string }[];
  readonly purchase_usd: { readonly min: string; readonly max: string };
  readonly custom_access: {
    readonly usd_per_day: string;
    readonly days: { readonly max: number };
  };
}
