// What the owner of an account changes during a schedule, at nodes picked by chance: keys made,
// rotated and revoked, a Custom profile replaced. Keeps what was acknowledged, and measures for how
// long a revoked key is accepted elsewhere.
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeProcess } from "./node-process.ts";
import type { ServedCalls } from "./provider.ts";
import { manage } from "./site.ts";
import { type CallRecord, pick, type SpendingAccount } from "./traffic.ts";

/** The account whose owner changes things. */
export interface OwnedAccount extends SpendingAccount {
  readonly token: string;
}

/** What changes need. */
export interface ChangeParts {
  readonly nodes: readonly NodeProcess[];
  readonly owner: OwnedAccount;
  readonly record: CallRecord;
  readonly random: () => number;
  /** Where versions of the Custom profile have their provider. */
  readonly providerUrl: string;
  readonly served: ServedCalls;
  /** Whether a node has been undisturbed, its database too, since a time. */
  readonly isCalmSince: (node: string, sinceMs: number) => boolean;
}

/** Changes of a schedule. */
export interface Changes {
  /** For how long each undisturbed node accepted a key after its end was acknowledged. */
  readonly revocationsMs: readonly number[];
  readonly acknowledged: () => number;
  /** Makes one change. */
  change(): Promise<void>;
  /** What a node does not know that was acknowledged; empty = it knows all. */
  unknownAt(node: NodeProcess): Promise<readonly string[]>;
}

interface OwnedKey {
  readonly id: string;
  secret: string;
  /** Null = a request about it was not answered. */
  isRevoked: boolean | null;
}

interface State {
  readonly keys: OwnedKey[];
  /** Secrets that were replaced at once. */
  readonly replaced: string[];
  readonly revocationsMs: number[];
  /** The last version of the profile that was acknowledged, and the last one that was sent. */
  profile: { readonly acknowledged: number; readonly sent: number };
  acknowledged: number;
}

const SLUG = "own-nodes";
const POLL_MS = 15;
/** A node that accepts a revoked key for longer is looked at again at the end. */
const WATCHED_MS = 8_000;

/** Prepares changes. */
export function createChanges(parts: ChangeParts): Changes {
  const state: State = {
    keys: [],
    replaced: [],
    revocationsMs: [],
    profile: { acknowledged: 0, sent: 0 },
    acknowledged: 0,
  };
  const kinds = [create, create, rotate, revoke, revoke, putProfile] as const;
  return {
    revocationsMs: state.revocationsMs,
    acknowledged: () => state.acknowledged,
    change: () => pick(kinds, parts.random)(parts, state),
    unknownAt: (node) => unknownAt(parts, state, node),
  };
}

async function create({ nodes, owner, random }: ChangeParts, state: State): Promise<void> {
  const name = `key ${state.keys.length}`;
  const answer = await manage(pick(nodes, random), owner.token, "POST", "/api/v1/keys", { name });
  if (answer?.status !== 201) return;
  state.acknowledged++;
  state.keys.push({ id: answer.json.id, secret: answer.json.key, isRevoked: false });
}

/** A key that works; null = there is none, and one is made. */
async function workingKey(parts: ChangeParts, state: State): Promise<OwnedKey | null> {
  const working = state.keys.filter(({ isRevoked }) => isRevoked === false);
  if (working.length > 0) return pick(working, parts.random);
  await create(parts, state);
  return null;
}

async function rotate(parts: ChangeParts, state: State): Promise<void> {
  const key = await workingKey(parts, state);
  if (key === null) return;
  const node = pick(parts.nodes, parts.random);
  key.isRevoked = null;
  const path = `/api/v1/keys/${key.id}/rotate`;
  const answer = await manage(node, parts.owner.token, "POST", path, { grace_seconds: 0 });
  if (answer?.status !== 200) return;
  state.acknowledged++;
  state.replaced.push(key.secret);
  key.secret = answer.json.key;
  key.isRevoked = false;
}

async function revoke(parts: ChangeParts, state: State): Promise<void> {
  const key = await workingKey(parts, state);
  if (key === null) return;
  const { nodes, owner, record, random } = parts;
  const asking = { caller: owner.caller, key: key.secret };
  const knowing = nodes.filter(({ id }) => parts.isCalmSince(id, performance.now()));
  await Promise.all(knowing.map((node) => record.call(node, asking)));
  key.isRevoked = null;
  const path = `/api/v1/keys/${key.id}`;
  const answer = await manage(pick(nodes, random), owner.token, "DELETE", path);
  if (answer?.status !== 204) return;
  key.isRevoked = true;
  state.acknowledged++;
  const sinceMs = performance.now();
  const times = await Promise.all(
    knowing.map((node) => acceptedMs(parts, { node, asking, sinceMs })),
  );
  state.revocationsMs.push(...times.filter((time) => time !== null));
}

interface Revoked {
  readonly node: NodeProcess;
  readonly asking: Pick<SpendingAccount, "caller" | "key">;
  readonly sinceMs: number;
}

/**
 * For how long after the revocation a call could be sent that was accepted; null = the node was
 * disturbed meanwhile.
 */
async function acceptedMs(
  { record, isCalmSince }: ChangeParts,
  { node, asking, sinceMs }: Revoked,
): Promise<number | null> {
  let lastMs = 0;
  for (; lastMs < WATCHED_MS; await sleep(POLL_MS)) {
    const sentMs = performance.now() - sinceMs;
    const result = await record.call(node, asking);
    if (!isCalmSince(node.id, sinceMs) || result.kind === "unknown") return null;
    if (result.kind === "refused") {
      if (REVOKED.has(result.code)) return lastMs;
      if (performance.now() - sinceMs > WATCHED_MS) return null;
    } else lastMs = sentMs;
  }
  return lastMs;
}

const REVOKED: ReadonlySet<string> = new Set(["key_revoked", "unauthorized"]);

async function putProfile(parts: ChangeParts, state: State): Promise<void> {
  const { nodes, owner, providerUrl, random } = parts;
  const version = state.profile.sent + 1;
  state.profile = { ...state.profile, sent: version };
  const answer = await manage(pick(nodes, random), owner.token, "PUT", `/api/v1/profiles/${SLUG}`, {
    chains: {
      ethereum: { providers: [{ name: "own", url: `${providerUrl}${versionPath(version)}` }] },
    },
  });
  if (answer?.status !== 200) return;
  state.acknowledged++;
  state.profile = { ...state.profile, acknowledged: version };
}

/** The path at which a version of the profile has its provider. */
function versionPath(version: number): string {
  return `/version/${version}`;
}

async function unknownAt(
  { owner, record, served }: ChangeParts,
  state: State,
  node: NodeProcess,
): Promise<readonly string[]> {
  const found: string[] = [];
  const tryKey = async (key: string): Promise<string> => {
    const result = await record.call(node, { caller: owner.caller, key });
    return result.kind === "refused" ? result.code : result.kind;
  };
  for (const { id, secret, isRevoked } of state.keys) {
    if (isRevoked === null) continue;
    const how = await tryKey(secret);
    if (isRevoked ? !REVOKED.has(how) : how !== "answered")
      found.push(`${node.id}: ${id}, ${isRevoked ? "revoked" : "good"}, is ${how}`);
  }
  for (const secret of state.replaced) {
    const how = await tryKey(secret);
    if (!REVOKED.has(how)) found.push(`${node.id}: a replaced secret is ${how}`);
  }
  const old = await oldProfileAt({ owner, record, served }, state, node);
  return old === null ? found : [...found, old];
}

/** That a node serves an older version of the profile than was acknowledged; null = it does not. */
async function oldProfileAt(
  { owner, record, served }: Pick<ChangeParts, "owner" | "record" | "served">,
  { profile, keys }: State,
  node: NodeProcess,
): Promise<string | null> {
  const key = keys.find(({ isRevoked }) => isRevoked === false);
  if (profile.acknowledged === 0 || key === undefined) return null;
  const asking = { caller: owner.caller, key: key.secret };
  const result = await record.call(node, asking, `profile/${SLUG}/ethereum`);
  const path = served.pathOf(owner.caller, result.number);
  const isRight = Array.from({ length: profile.sent - profile.acknowledged + 1 }, (_, more) =>
    versionPath(profile.acknowledged + more),
  ).includes(path ?? "");
  if (result.kind === "answered" && isRight) return null;
  const how = result.kind === "refused" ? result.code : result.kind;
  return `${node.id}: version ${profile.acknowledged} of the profile is ${how} at ${path}`;
}
