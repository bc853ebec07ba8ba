// Handlers of claims, claim links and connections. The pages for their owners are in
// `pages/account/`.

import { cuFor } from "../../../core/billing/price.ts";
import { apiFault, limited } from "../../../core/faults/api-fault.ts";
import { CLAIM_LINK_MS, claimKey, createClaimLink } from "../../../hosted/accounts/claim-links.ts";
import {
  CONNECTION_MS,
  type ConnectionRecord,
  cameByConnection,
  listConnections,
  POLL_MS,
  pollConnection,
  requestConnection,
  revokeConnection,
} from "../../../hosted/accounts/connections.ts";
import type { CLAIM_OPERATIONS } from "../../contract/claims.ts";
import type { HandlerParts, StoreHandlers } from "../parts.ts";
import { restrictionsView } from "./accounts.ts";
import { created, instant, instantOrNull, NO_CONTENT, ok } from "./views.ts";

const MS_PER_S = 1_000;

/** Path of the claim page, before the token of the link. */
export const CLAIM_PAGE = "/claim/";
/** Path of the approval page, before its secret. */
export const CONNECTION_PAGE = "/connect/";

/** The handlers of claims and connections. */
export const CLAIM_HANDLERS: StoreHandlers<keyof typeof CLAIM_OPERATIONS> = {
  async claimAgentKey({ params, caller: { key } }, { store, runtime, settings, changes }) {
    if (key.type === "anonymous") return NO_ACCOUNT;
    const owner = {
      kind: "owner",
      accountId: key.accountId,
      profiles: key.allowedProfiles,
      manages: false,
      expiresAtMs: null,
    } as const;
    const claiming = { store, changes, maxKeys: settings.maxKeys, nowMs: runtime.wallMs() };
    const claimed = await claimKey(claiming, params.key, owner);
    if (claimed === "full")
      return apiFault("key_limit", "the account has as many keys as it may have");
    if (typeof claimed === "string") return NOT_CLAIMABLE;
    return ok({ account_id: claimed.accountId, key_prefix: claimed.keyPrefix, claimed: true });
  },
  async createAgentClaimLink({ caller: { key }, baseUrl }, parts) {
    if (key.type !== "anonymous") return OWNED;
    const link = await linkOf(parts, key.accountId, baseUrl);
    if (link.kind === "answer") return link;
    return link.code === "key_revoked" ? NOT_CLAIMABLE : apiFault("already_claimed", link.message);
  },
  async createAccountClaimLink({ caller, baseUrl }, parts) {
    if (
      caller.kind === "agent" &&
      (caller.agent.profiles !== null ||
        caller.agent.expiresAtMs !== null ||
        (await cameByConnection(parts.store, caller.agent.id)))
    )
      return LENT;
    if (caller.kind === "key" && caller.key.type !== "anonymous")
      return apiFault("forbidden", "an RPC key does not hand over its account", {
        nextAction: "send the management token as Authorization: Bearer <token>",
      });
    const { accountId } = caller.kind === "agent" ? caller.agent : caller.key;
    return linkOf(parts, accountId, baseUrl);
  },
  async createConnection({ body, address, baseUrl }, { store, runtime, connectionRequests }) {
    const refusal = limited(
      connectionRequests.take(address, runtime.now()),
      "this address has asked for too many connections in the last hour",
    );
    if (refusal !== null) return refusal;
    const made = await requestConnection(store, body.name, runtime.wallMs());
    if (made.kind === "api_fault") return made;
    return created({
      id: made.id,
      token: made.token,
      approval_url: `${baseUrl}${CONNECTION_PAGE}${made.approval}`,
      expires_in: CONNECTION_MS / MS_PER_S,
      poll_interval: POLL_MS / MS_PER_S,
    });
  },
  async listConnections({ caller }, { store, runtime }) {
    const connections = await listConnections(store, caller.agent.accountId, runtime.wallMs());
    return ok({ connections: connections.map(connectionView) });
  },
  async getConnection({ params, caller }, { store, runtime }) {
    const asked = { id: params.id, token: caller.token };
    const polled = await pollConnection(store, asked, runtime.wallMs());
    if (polled.kind === "api_fault") return polled;
    const token = polled.token === null ? {} : { management_token: polled.token };
    return ok({ id: params.id, status: polled.status, ...token });
  },
  async deleteConnection({ params, caller }, { store, runtime }) {
    const { accountId, profiles } = caller.agent;
    if (profiles !== null)
      return apiFault(
        "forbidden",
        "a management token that is restricted to some profiles revokes no connection",
      );
    const revoked = await revokeConnection(store, { id: params.id, accountId }, runtime.wallMs());
    if (revoked === "revoked") return NO_CONTENT;
    return apiFault("not_found", "no connection of the account has this id", {
      nextAction: "GET /api/v1/connections lists the connections with their ids",
    });
  },
};

async function linkOf(
  { store, runtime, settings }: HandlerParts,
  accountId: string,
  baseUrl: string,
) {
  const link = await createClaimLink(store, accountId, runtime.wallMs());
  if (link.kind === "api_fault") return link;
  return ok({
    key_prefix: link.keyPrefix,
    balance_cu: cuFor(settings.tariff, link.balanceN),
    claim_url: `${baseUrl}${CLAIM_PAGE}${link.token}`,
    expires_in: CLAIM_LINK_MS / MS_PER_S,
  });
}

const LENT = apiFault(
  "forbidden",
  "the management token was lent or is restricted, and a claim link hands over the whole account",
  { nextAction: "send the management token that came with the account" },
);
const NO_ACCOUNT = apiFault("unauthorized", "the credential is an anonymous key, and no account", {
  nextAction:
    "send a key of the account as X-Svc-Api-Key; POST /api/v1/keys creates an account and its " +
    "first key",
});
const NOT_CLAIMABLE = apiFault(
  "not_found",
  "no anonymous key is like the one in the path, or it has been claimed",
  {
    nextAction:
      "put the full anonymous key, svc_ak_…, into the path; one that was claimed shows in GET " +
      "/api/v1/keys of its account",
  },
);

const OWNED = apiFault(
  "already_claimed",
  "the key belongs to an account, and a key alone does not hand that over",
  {
    nextAction:
      "manage with a token from the owning account: POST /api/v1/accounts/current/claim-link " +
      "makes a link for the account",
  },
);

function connectionView(connection: ConnectionRecord) {
  return {
    id: connection.id,
    name: connection.name,
    status: connection.status,
    agent_id: connection.agentId,
    restrictions: restrictionsView(connection),
    created_at: instant(connection.createdAtMs),
    approved_at: instantOrNull(connection.decidedAtMs),
  };
}
