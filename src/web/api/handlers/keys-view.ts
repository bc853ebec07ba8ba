// Renders keys for answers: amounts in CU and USD, times as ISO text, and ready-made URLs.

import type { z } from "zod";
import { cuFor, estimatedRequests, type Tariff, usdText } from "../../../core/billing/price.ts";
import { shownKey } from "../../../hosted/keys/key-fields.ts";
import type { KeyRecord } from "../../../hosted/keys/keys.ts";
import type * as shape from "../../contract/keys.ts";

/** A key without its secret. */
export function keyView(key: KeyRecord, tariff: Tariff): z.output<typeof shape.key> {
  return {
    ...shownKey(key),
    total_funded_cu: cuFor(tariff, key.fundedN),
    ...balanceView(key.balanceN, tariff),
  };
}

/** A balance in CU, USD and remaining calls. */
export function balanceView(balanceN: bigint, tariff: Tariff) {
  const cu = cuFor(tariff, balanceN);
  return {
    balance_cu: cu,
    balance_usd: usdText(balanceN),
    estimated_requests: { ...estimatedRequests(cu) },
  };
}

/** URLs that contain a key and name a chain. */
export function keyUrls(
  baseUrl: string,
  secret: string,
  chain: string,
): { readonly rpc_url: string; readonly ws_url: string } {
  const path = `rpc/k/${secret}/load-balanced/${chain}`;
  return { rpc_url: `${baseUrl}/${path}`, ws_url: `${baseUrl.replace(/^http/, "ws")}/ws/${path}` };
}

/** A time as ISO 8601 text. */
export function instant(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

/** A time as ISO 8601 text; null stays null. */
export function instantOrNull(wallMs: number | null): string | null {
  return wallMs === null ? null : instant(wallMs);
}
