// Handlers of connections: a program requests a management token and polls for it; the owner of the
// account lists and revokes connections. Approval happens on a page, in `pages/account/`.

import { AddressLimit } from "../../../core/billing/address-limit.ts";
import { apiFault } from "../../../core/faults/api-fault.ts";
import {
  CONNECTION_MS,
  type ConnectionRecord,
  listConnections,
  POLL_MS,
  pollConnection,
  requestConnection,
  revokeConnection,
} from "../../../hosted/accounts/connections.ts";
import type { Handlers } from "../../contract/contract.ts";
import type { HandlerParts } from "../parts.ts";
import { created, instant, instantOrNull, NO_CONTENT, ok } from "./views.ts";

type ConnectionHandlers = Handlers<
  "createConnection" | "listConnections" | "getConnection" | "deleteConnection"
>;

const MS_PER_S = 1_000;
/** Connections requested per address. */
const REQUESTS = { perSecond: 20 / 3_600, burst: 20 };

/** Path of the approval page, before its secret. */
export const CONNECTION_PAGE = "/connect/";

/** Creates the handlers of connections. */
export function connectionHandlers({ store, runtime }: HandlerParts): ConnectionHandlers {
  const requests = new AddressLimit(REQUESTS);
  return {
    async createConnection({ body, address, baseUrl }) {
      const retryAfterMs = requests.take(address, runtime.now());
      if (retryAfterMs > 0)
        return apiFault(
          "rate_limited",
          "this address has asked for too many connections in the last hour",
          { retryAfterMs },
        );
      const made = await requestConnection(store, body.name, runtime.wallMs());
      if (made.kind === "api_fault") return made;
      const times = { expires_in: CONNECTION_MS / MS_PER_S, poll_interval: POLL_MS / MS_PER_S };
      return created({
        id: made.id,
        token: made.token,
        approval_url: `${baseUrl}${CONNECTION_PAGE}${made.approval}`,
        ...times,
      });
    },
    async listConnections({ caller }) {
      const connections = await listConnections(store, caller.agent.accountId, runtime.wallMs());
      return ok({ connections: connections.map(connectionView) });
    },
    async getConnection({ params, caller }) {
      const polled = await pollConnection(
        store,
        { id: params.id, token: caller.token },
        runtime.wallMs(),
      );
      if (polled.kind === "api_fault") return polled;
      const token = polled.token === null ? {} : { management_token: polled.token };
      return ok({ id: params.id, status: polled.status, ...token });
    },
    async deleteConnection({ params, caller }) {
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
}

function connectionView({
  id,
  name,
  status,
  agentId,
  profiles,
  readOnly,
  expiresAtMs,
  createdAtMs,
  decidedAtMs,
}: ConnectionRecord) {
  const restrictions = {
    profiles: profiles === null ? null : [...profiles],
    read_only: readOnly,
    expires_at: instantOrNull(expiresAtMs),
  };
  return {
    id,
    name,
    status,
    agent_id: agentId,
    restrictions,
    created_at: instant(createdAtMs),
    approved_at: instantOrNull(decidedAtMs),
  };
}
