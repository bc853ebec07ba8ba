// Handlers of the keys of an account: create, list, read, change, rotate and delete.
import { type ApiFault, apiFault, limited } from "../../../core/faults/api-fault.ts";
import { type ChangeParts, deleteKey, patchKey, rotateKey } from "../../../hosted/keys/change.ts";
import { addKey, createAccount } from "../../../hosted/keys/create.ts";
import { choose, UNCHOSEN } from "../../../hosted/keys/key-fields.ts";
import { keyById, listKeys } from "../../../hosted/keys/keys.ts";
import type { KEY_OPERATIONS } from "../../contract/keys.ts";
import type { ApiInput } from "../../contract/operation.ts";
import type { HandlerParts, StoreHandlers } from "../parts.ts";
import { accountView } from "./accounts.ts";
import { profilesOfAccount } from "./profiles-view.ts";
import { chainOfKey, created, instant, keyUrls, keyView, NO_CONTENT, ok } from "./views.ts";

const MS_PER_S = 1_000;

/** The handlers of keys. */
export const KEY_HANDLERS: StoreHandlers<keyof typeof KEY_OPERATIONS> = {
  async createKey({ body, caller, address, baseUrl, isLocal }, parts) {
    const { store, runtime, settings } = parts;
    const agent = caller.kind === "agent" ? caller.agent : null;
    const accountId = agent?.accountId ?? null;
    const key = choose(UNCHOSEN, body, {
      known: await profilesOfAccount(parts, accountId),
      restriction: agent?.profiles ?? null,
    });
    if ("kind" in key) return key;
    const refusal = await creationRefusal(parts, { address, isLocal });
    if (refusal !== null) return refusal;
    const nowMs = runtime.wallMs();
    // Read before the change: the secret of a new key must reach the caller even if the store fails
    // afterwards.
    const balance_usd =
      agent === null ? "0" : (await accountView(parts, agent.accountId, null)).balance_usd;
    const chain = await chainOfKey(parts, accountId, key.profiles.defaultProfile);
    const made =
      agent === null
        ? await createAccount(store, key, nowMs)
        : await addKey(
            store,
            { ...key, accountId: agent.accountId, agentId: agent.id, maxKeys: settings.maxKeys },
            nowMs,
          );
    if (made.kind === "api_fault") return made;
    return created({
      id: made.id,
      key: made.secret,
      key_prefix: made.prefix,
      account_id: made.accountId,
      balance_usd,
      ...keyUrls(baseUrl, made.secret, chain),
      ...(made.token === null ? {} : { management_token: made.token }),
    });
  },
  async listKeys({ query, caller }, { store, runtime, settings }) {
    const { keys, next } = await listKeys(store, caller.agent, query, runtime.wallMs());
    return ok({ keys: keys.map((key) => keyView(key, settings.tariff)), next });
  },
  getCurrentKey: ({ caller }, { settings }) => ok(keyView(caller.key, settings.tariff)),
  async getKey({ params, caller }, { store, runtime, settings }) {
    const key = await keyById(store.db, params.id, caller.agent, runtime.wallMs());
    if (key === null)
      return apiFault("not_found", "no key of the account has this id", {
        nextAction: "GET /api/v1/keys lists the keys with their ids",
      });
    return ok(keyView(key, settings.tariff));
  },
  async updateKey({ params, body, caller }, parts) {
    const known = await profilesOfAccount(parts, caller.agent.accountId);
    const ref = { id: params.id, scope: caller.agent };
    const patched = await patchKey(changing(parts), ref, { input: body, known });
    return "kind" in patched ? patched : ok(keyView(patched, parts.settings.tariff));
  },
  async deleteKey({ params, caller }, parts) {
    const deleted = await deleteKey(changing(parts), { id: params.id, scope: caller.agent });
    return deleted === "deleted" ? NO_CONTENT : deleted;
  },
  async rotateKey({ params, body, caller, baseUrl }, parts) {
    // Read before the change: a new secret must reach the caller even if the store fails
    // afterwards.
    const { store, runtime } = parts;
    const before = await keyById(store.db, params.id, caller.agent, runtime.wallMs());
    const { accountId = null, defaultProfile = null } = before ?? {};
    const chain = await chainOfKey(parts, accountId, defaultProfile);
    const ref = { id: params.id, scope: caller.agent };
    const rotated = await rotateKey(changing(parts), ref, body.grace_seconds * MS_PER_S);
    if ("kind" in rotated) return rotated;
    return ok({
      key: rotated.secret,
      key_prefix: rotated.prefix,
      previous_valid_until: instant(rotated.previousValidUntilMs),
      ...keyUrls(baseUrl, rotated.secret, chain),
    });
  },
};

function changing({ store, changes, runtime }: HandlerParts): ChangeParts {
  return { store, changes, nowMs: runtime.wallMs() };
}

type Creator = Pick<ApiInput, "address" | "isLocal">;

/** Why this address may not create another key now. Null = it may, and the key is counted. */
export async function creationRefusal(
  { creations, devnet, runtime }: HandlerParts,
  { address, isLocal }: Creator,
): Promise<ApiFault<"rate_limited"> | null> {
  if (devnet && isLocal) return null;
  const retryAfterMs = await creations.take(address, runtime.now());
  return limited(retryAfterMs, "this address has created too many keys in the last hour");
}
