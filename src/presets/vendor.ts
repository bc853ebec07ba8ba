// The form of a row of the vendor tables.
import type { ProviderKind } from "../core/provider/method-scope.ts";

/** What one plan of a vendor allows. */
export interface VendorPlan {
  /** Requests a second. */
  readonly rps?: number;
  /** Credits a day and a month. */
  readonly daily?: number;
  readonly monthly?: number;
  /** USD of a million credits. */
  readonly price?: number;
  /** Blocks of one `eth_getLogs`; null = any number. By chain id, `other` for the rest. */
  readonly blocks?: number | Readonly<Record<string, number | null>>;
}

/** One vendor. `{key}`, `{id}`, `{slug}` and `{endpoint}` in addresses are filled in. */
export interface Vendor {
  readonly name: string;
  /** Registrable domain of its addresses: whoever is reached there is the same operator. */
  readonly domain: string;
  /**
   * The chains that it serves: words of its addresses by chain id; `any`: addresses hold the chain
   * id, and no list was found; `endpoints`: they hold names of their own, which the file says.
   */
  readonly chains: ReadonlyMap<number, string> | "any" | "endpoints";
  readonly http: string;
  /** Absent = none is known. */
  readonly ws?: string;
  /** Chains without WebSocket. */
  readonly httpOnly?: readonly number[];
  /** `optional`: without a key, the address is `keyless`. */
  readonly key: "required" | "optional" | "none";
  readonly keyless?: string;
  /** The header that carries the key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent = `node`. */
  readonly kind?: ProviderKind;
  /** The methods that it serves; absent = those of a node. */
  readonly methods?: readonly string[];
  readonly archival?: true;
  /** Credits by method, and of all other methods. */
  readonly credits?: Readonly<Record<string, number>>;
  readonly otherCredits?: number;
  readonly plans: Readonly<Record<string, VendorPlan>>;
  readonly sources: readonly string[];
  /** The day on which the sources were last looked at. */
  readonly lookedAt: string;
  /** The day on which it closes, or closed. */
  readonly sunset?: string;
}

/** The words for chains by chain id. */
export function wordsOf(text: string): ReadonlyMap<number, string> {
  return new Map(
    text.split(/\s+/).map((item) => {
      const [id = "", word = id] = item.split("=");
      return [Number(id), word];
    }),
  );
}

/** Credits by method. */
export function pricesOf(text: string): Readonly<Record<string, number>> {
  return Object.fromEntries(
    text.split(/\s+/).map((item) => {
      const [method = "", credits] = item.split("=");
      return [method, Number(credits)];
    }),
  );
}
