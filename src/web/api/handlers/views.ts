// Renders keys for answers: amounts in CU and USD, times as ISO text, and ready-made URLs.
import type { z } from "zod";
import type { ManagedSlug } from "../../../core/billing/access.ts";
import { cuFor, estimatedRequests, type Tariff, usdText } from "../../../core/billing/price.ts";
import { type Chain, exampleChain } from "../../../core/provider/chain.ts";
import { shownKey } from "../../../hosted/keys/key-fields.ts";
import { DEFAULT_PROFILE } from "../../../hosted/keys/key-profiles.ts";
import type { KeyRecord } from "../../../hosted/keys/keys.ts";
import { profileBySlug } from "../../../hosted/profiles/profiles.ts";
import type * as shape from "../../contract/keys.ts";
import type { HandlerParts } from "../parts.ts";

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

type ChainParts = Pick<HandlerParts, "chains" | "servedChains" | "store" | "custom">;
type ManagedParts = Pick<HandlerParts, "chains" | "servedChains">;

/** The chains that a managed profile serves, in the order of the configuration. */
export function managedChains(parts: ManagedParts, slug: ManagedSlug): readonly Chain[] {
  const served = parts.servedChains(slug);
  return parts.chains().filter((chain) => served.includes(chain.chainName));
}

/** The chain in the URLs of a key whose default profile is managed. */
export function chainOfManaged(parts: ManagedParts, slug: ManagedSlug): string {
  const names = managedChains(parts, slug).map((chain) => chain.chainName);
  const example = exampleChain(names, parts.servedChains("public"));
  return example ?? parts.chains()[0]?.chainName ?? "ethereum";
}

/**
 * The chain in the URLs of a key: one that its default profile serves. `accountId` null = a new
 * account; `profile` null = `premium`.
 */
export async function chainOfKey(
  parts: ChainParts,
  accountId: string | null,
  profile: string | null,
): Promise<string> {
  const slug = profile ?? DEFAULT_PROFILE;
  if (slug === "premium" || slug === "public") return chainOfManaged(parts, slug);
  const kept = { store: parts.store, sealer: parts.custom.sealer };
  const record = accountId === null ? null : await profileBySlug(kept, { accountId, slug });
  const own = Object.keys(record?.document?.chains ?? {});
  const served = parts
    .chains()
    .filter(({ chainName, chainId, aliases }) =>
      [chainName, String(chainId), ...aliases].some((segment) => own.includes(segment)),
    );
  const names = served.map(({ chainName }) => chainName);
  // Without Custom access, `premium` serves the profile.
  return exampleChain(names, parts.servedChains("premium")) ?? chainOfManaged(parts, "premium");
}

/** 200 with a body. */
export function ok<const Body>(body: Body) {
  return { kind: "answer", status: 200, body } as const;
}

/** 201 with a body. */
export function created<const Body>(body: Body) {
  return { kind: "answer", status: 201, body } as const;
}

export const NO_CONTENT = { kind: "answer", status: 204, body: null } as const;
