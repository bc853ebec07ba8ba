// The first steps with an instance as working shell commands, and how to handle its refusals.
// Shared by several documents.
import { usdText } from "../../core/billing/price.ts";
import { BATCH_DEADLINE_MS } from "../rpc/pacer.ts";
import { chainIn, type DocumentFacts, type HostedFacts } from "./facts.ts";
import { pathOf } from "./operations.ts";
import type { Site } from "./site.ts";

/** A step: its purpose and its shell commands. */
export interface FirstStep {
  readonly title: string;
  readonly shell: string;
  readonly note: string;
}

const CALL =
  "-H 'content-type: application/json' -d " +
  `'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'`;

/** The steps to a first answered call. They share one shell. */
export function firstSteps(facts: DocumentFacts, { baseUrl }: Site): readonly FirstStep[] {
  const { hosted, defaultProfile } = facts;
  const chain = chainIn(facts, defaultProfile.withoutKey) ?? "{chain}";
  const chainWithKey = chainIn(facts, defaultProfile.withKey) ?? "{chain}";
  if (hosted === null || hosted.keyless) {
    const call = {
      title: "Call",
      shell: `curl -s ${baseUrl}/rpc/${chain} ${CALL}`,
      note: hosted === null ? "No key is needed." : "Calls without a key are not metered here.",
    };
    return hosted === null ? [call] : [call, ...keyedSteps(hosted, chainWithKey, baseUrl)];
  }
  return keyedSteps(hosted, chainWithKey, baseUrl);
}

function keyedSteps(
  { startingGrantCu, tariff, keysPerHour }: HostedFacts,
  chain: string,
  baseUrl: string,
): readonly FirstStep[] {
  const keys = baseUrl + pathOf("createAgentKey");
  const worth = usdText(startingGrantCu * tariff.nanoPerCu);
  return [
    {
      title: "Create a key",
      shell: `KEY=$(curl -s -X POST ${keys} | sed -n 's/.*"key": *"\\([^"]*\\)".*/\\1/p'); echo "$KEY"`,
      note:
        `No credential is needed. The key starts with ${startingGrantCu} CU (${worth} USD) and ` +
        `is shown only here: keep it. One address may create ${keysPerHour} keys an hour.`,
    },
    {
      title: "Call with the key",
      shell: `curl -s "${baseUrl}/rpc/k/$KEY/load-balanced/${chain}" ${CALL}`,
      note:
        "With `-i` curl shows the headers that tell what it cost: `x-svc-cu`, `x-svc-usd`, " +
        "`x-svc-balance-usd`.",
    },
    {
      title: "Read the balance",
      shell: `curl -s "${keys}/$KEY"`,
      note: "`balance_cu` and `estimated_requests` tell what is left.",
    },
  ];
}

/** How to handle refusals that callers with a key may get; empty for an instance without keys. */
export function refusalNotes({ hosted }: DocumentFacts): readonly string[] {
  if (hosted === null) return [];
  const { freeCuPerMonth, buckets, payments } = hosted;
  const paying =
    payments === null
      ? "Payments are not open on this instance."
      : "The answer carries offers to fund the key: sign one and send the same request again " +
        "with it. A batch answers 200 with this error in each item and carries no offer: send " +
        "one call, or fund the key. WebSockets take no payment: fund the key over HTTP.";
  const allowance =
    freeCuPerMonth === 0
      ? ""
      : ` An account made with \`POST ${pathOf("createKey")}\` may use ${freeCuPerMonth} CU a ` +
        `month on public providers, at load-balanced; \`included_usage.resets_at\` of \`GET ` +
        `${pathOf("getCurrentAccount")}\` tells when it begins anew. Anonymous keys have no such ` +
        "allowance.";
  return [
    `**402 \`balance_exhausted\`**: nothing is left that pays for the call. Repeating it does ` +
      `not help.${allowance} ${paying}`,
    `**429 \`rate_limit_exceeded\`**: wait the seconds that \`Retry-After\` names, then send ` +
      `the same request. An account has ${buckets.managed.perSecond} requests a second ` +
      `(${buckets.managed.burst} at once) with premium access, ${buckets.reduced.perSecond} ` +
      `(${buckets.reduced.burst}) where public providers stand in for it, and ` +
      `${buckets.public.perSecond} (${buckets.public.burst}) on profile \`public\`. Each item of ` +
      "a batch counts; items of a batch and requests on a WebSocket wait for the rate, up to " +
      `${BATCH_DEADLINE_MS / 1_000} seconds, and are then refused one by one. Two batches or ` +
      `WebSockets of an account may wait at once, a third gets 429. \`RateLimit\` tells what is left.`,
    "**401 `unauthorized` or `key_revoked`**: the key does not exist, is mistyped, or was " +
      "deleted or replaced. Use the current key or create another one.",
    "**`unavailable`** (-32002; HTTP 200 where no provider of the chain could be asked, 503 " +
      "where the service itself is busy or stopping): wait for `Retry-After`, then send the same " +
      "request. Where `error.data.retryable` is false, waiting does not help.",
  ];
}
