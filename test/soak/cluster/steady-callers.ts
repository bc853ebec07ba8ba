// Callers of every kind at a steady rate through a balancer: paid, free, Custom and keyless ones,
// and keys that no node has seen before. Keeps when each call was sent, who answered, and how.
import { setTimeout as sleep } from "node:timers/promises";
import type { OwnedAccount } from "./changes.ts";
import { createCredits, type SentCredit } from "./credits.ts";
import { type ClusterSite, manage, OPERATOR } from "./site.ts";
import type { CallRecord, SpendingAccount } from "./traffic.ts";

/**
 * `idle`: paid, a call every two seconds. `allowance`: free by the account's allowance, on the URL
 * of paid calls. `unseen`: good keys, each used once.
 */
export const CALLER_KINDS = [
  "paid",
  "idle",
  "free",
  "allowance",
  "custom",
  "keyless",
  "unseen",
] as const;
export type CallerKind = (typeof CALLER_KINDS)[number];

/** One call and what came of it. */
export interface SteadyCall {
  readonly kind: CallerKind;
  readonly atMs: number;
  readonly tookMs: number;
  /** The node that answered, as the balancer names it; empty = none did. */
  readonly servedBy: string;
  /** Why it was not answered; null = it was. */
  readonly code: string | null;
}

/** Accounts of the callers. */
export interface SteadyCast {
  /** Those that pay. */
  readonly paid: readonly SpendingAccount[];
  readonly free: readonly SpendingAccount[];
  readonly custom: SpendingAccount;
  readonly unseenKeys: string[];
  readonly credits: readonly SentCredit[];
}

/** How callers are started. */
export interface SteadyPlan {
  readonly url: string;
  readonly cast: SteadyCast;
  readonly record: CallRecord;
}

const PER_SECOND: Readonly<Record<CallerKind, number>> = {
  paid: 40,
  idle: 0.5,
  free: 8,
  allowance: 8,
  custom: 8,
  keyless: 8,
  unseen: 2,
};
const FUNDED_N = 1_000_000_000n;
const TRIES = 8;
const KEYS_PER_ACCOUNT = 99;
const SLUG = "own-nodes";
/** Accounts that call as `paid`, in turn. */
const PAYING = 2;
/** The number under which calls without an account are counted by providers. */
const NOBODY = 99;

/** Makes the accounts of callers who call for so long. */
export async function createCast(
  site: ClusterSite,
  { random, name, forMs }: { readonly random: () => number; name: string; forMs: number },
): Promise<SteadyCast> {
  const { nodes } = site;
  const credits = createCredits({ nodes, random, prefix: name });
  let callers = 0;
  const account = async (): Promise<OwnedAccount> => {
    const { account_id: id, key, management_token: token } = await makeKey(site, "", name);
    return { caller: ++callers, id, key, token };
  };
  const paid = [await account(), await account(), await account()];
  for (const each of paid) await credits.give(each, FUNDED_N, TRIES);
  const free = [await account(), await account()];
  const custom = await account();
  await giveProfile(site, custom, name);
  const count = Math.ceil((forMs / 1_000) * PER_SECOND.unseen);
  const unseenKeys: string[] = [];
  for (let owner: OwnedAccount | null = null; unseenKeys.length < count; ) {
    if (owner === null || unseenKeys.length % KEYS_PER_ACCOUNT === 0) owner = await account();
    unseenKeys.push((await makeKey(site, owner.token, name)).key);
  }
  return { paid, free, custom, unseenKeys, credits: credits.sent };
}

/** A key of an account, or of a new one; asks again where a busy machine answers too late. */
async function makeKey({ nodes }: ClusterSite, token: string, name: string) {
  for (let tries = 0; tries < TRIES; tries++) {
    const [node] = nodes;
    const made = node && (await manage(node, token, "POST", "/api/v1/keys", { name }));
    if (made?.status === 201) return made.json;
  }
  throw new Error("no key could be made");
}

/** Days of Custom access, and a profile to use them with. */
async function giveProfile(site: ClusterSite, owner: OwnedAccount, name: string): Promise<void> {
  const [node] = site.nodes;
  if (node === undefined) throw new Error("there are no nodes");
  const url = `${site.providers.urls.at(-1)}/custom`;
  const answers = [
    await manage(node, OPERATOR, "POST", `/api/v1/operator/accounts/${owner.id}/custom-access`, {
      days: 2,
      reference: name,
    }),
    await manage(node, owner.token, "PUT", `/api/v1/profiles/${SLUG}`, {
      chains: { ethereum: { providers: [{ name: "own", url }] } },
    }),
  ];
  for (const answer of answers)
    if (answer?.status !== 200) throw new Error(`no Custom profile: ${answer?.text}`);
}

/** One call of every account to every node, past the balancer: from then on nodes know its key. */
export async function introduce(
  site: ClusterSite,
  { cast, record }: Pick<SteadyPlan, "cast" | "record">,
): Promise<void> {
  const kinds = CALLER_KINDS.filter((kind) => kind !== "unseen" && kind !== "keyless");
  for (const node of site.nodes)
    for (const kind of kinds)
      for (let n = 0; n < PAYING; n++) {
        const { account, path } = targetOf(cast, kind, n);
        await record.call(node, account, path);
      }
}

/** Starts callers; the returned function resolves with their calls when all are answered. */
export function startCallers(plan: SteadyPlan): () => Promise<readonly SteadyCall[]> {
  const calls: SteadyCall[] = [];
  const underWay = new Set<Promise<void>>();
  let isRunning = true;
  const loops = CALLER_KINDS.map(async (kind) => {
    const everyMs = 1_000 / PER_SECOND[kind];
    for (let n = 0, dueMs = performance.now(); isRunning; n++) {
      const call = callOnce(plan, kind, n).then((made) => void calls.push(made));
      underWay.add(call);
      void call.finally(() => underWay.delete(call));
      dueMs += everyMs;
      await sleep(Math.max(0, dueMs - performance.now()));
    }
  });
  return async () => {
    isRunning = false;
    await Promise.all(loops);
    await Promise.all(underWay);
    return calls;
  };
}

async function callOnce(plan: SteadyPlan, kind: CallerKind, n: number): Promise<SteadyCall> {
  const { account, path } = targetOf(plan.cast, kind, n);
  const atMs = performance.now();
  const result = await plan.record.call({ id: "balancer", url: plan.url }, account, path);
  const tookMs = performance.now() - atMs;
  return { kind, atMs, tookMs, servedBy: result.servedBy, code: codeOf(result) };
}

function codeOf(result: Awaited<ReturnType<CallRecord["call"]>>): string | null {
  switch (result.kind) {
    case "answered":
      return null;
    case "refused":
      return result.code;
    case "wrong":
      return "wrong answer";
    case "unknown":
      return result.isLate ? "no answer in time" : "connection lost";
  }
}

interface Target {
  readonly account: Pick<SpendingAccount, "caller" | "key">;
  readonly path: string;
}

function targetOf({ paid, free, custom, unseenKeys }: SteadyCast, kind: CallerKind, n: number) {
  const [first, second, idle] = paid;
  const [open, allowed] = free;
  const of = (account: Target["account"] | undefined, profile = ""): Target => {
    if (account === undefined) throw new Error(`nobody is left to call as ${kind}`);
    return { account, path: `${profile === "" ? "" : `profile/${profile}/`}ethereum` };
  };
  switch (kind) {
    case "paid":
      return of(n % PAYING === 0 ? first : second);
    case "idle":
      return of(idle);
    case "free":
      return of(open, "public");
    case "allowance":
      return of(allowed);
    case "custom":
      return of(custom, SLUG);
    case "keyless":
      return of({ caller: NOBODY, key: "" });
    case "unseen": {
      const key = unseenKeys.pop();
      return of(key === undefined ? undefined : { caller: NOBODY, key }, "public");
    }
  }
}
