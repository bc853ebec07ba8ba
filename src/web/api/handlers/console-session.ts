// Handlers of sessions in the console: who is signed in, sign-in and sign-out.
import { apiFault } from "../../../core/faults/api-fault.ts";
import type { SESSION_OPERATIONS } from "../../contract/console.ts";
import { type CookieForm, setCookie } from "../../http/console-cookie.ts";
import { cookieRefusal, SESSION_MS, type SessionCaller } from "../console-sessions.ts";
import type { InstanceHandlers, InstanceParts } from "../parts.ts";
import { created, instant, NO_CONTENT, ok } from "./views.ts";

const SESSION_S = SESSION_MS / 1_000;

/** The handlers. */
export const SESSION_HANDLERS: InstanceHandlers<keyof typeof SESSION_OPERATIONS> = {
  async getSession({ cookie: { form, id } }, parts) {
    const caller = id === null ? null : await parts.sessions.callerOf(id);
    const ended = id !== null && caller === null;
    const body = { ...viewOf(parts, caller), ended };
    return ended && form !== null ? { ...ok(body), headers: cookieHeader(form, null) } : ok(body);
  },
  async signIn({ body: { token }, cookie, address }, parts) {
    const { form, id: replaced } = cookie;
    if (form === null) return NO_COOKIE;
    const refusal = cookieRefusal("POST", cookie);
    if (refusal !== null) return refusal;
    const opened = await parts.sessions.signIn(token, { address, replaced });
    if (opened.kind === "api_fault") return opened;
    const { id, caller } = opened;
    if (caller.kind === "operator")
      await parts.recordAction({ ...DONE, actor: caller.actor, address, action: "signIn" });
    return { ...created(viewOf(parts, caller)), headers: cookieHeader(form, id) };
  },
  async signOut({ cookie, address }, { sessions, recordAction }) {
    const { form, id } = cookie;
    if (form === null || id === null) return NO_CONTENT;
    const refusal = cookieRefusal("DELETE", cookie);
    if (refusal !== null) return refusal;
    const caller = await sessions.callerOf(id);
    await sessions.signOut(id);
    if (caller?.kind === "operator")
      await recordAction({ ...DONE, actor: caller.actor, address, action: "signOut" });
    return { ...NO_CONTENT, headers: cookieHeader(form, null) };
  },
};

const DONE = { target: null, detail: null, outcome: "done" } as const;

const NO_COOKIE = apiFault("forbidden", "nobody can sign in over plain http from elsewhere", {
  nextAction:
    "use https (server.public_url), or open the console on the machine of the service itself, at " +
    "http://127.0.0.1 and its port",
});

function cookieHeader(form: CookieForm, id: string | null): readonly string[] {
  return ["Set-Cookie", setCookie(form, id, SESSION_S)];
}

/** The session of a caller; null = nobody is signed in. */
function viewOf({ runtime, sessions, summary }: InstanceParts, caller: SessionCaller | null) {
  return {
    role: ROLES[caller?.kind ?? "none"],
    ended: false,
    account_id: caller?.kind === "agent" ? caller.agent.accountId : null,
    read_only: caller?.kind === "agent" && caller.agent.readOnly,
    signed_in_at: caller === null ? null : instant(caller.session.createdAtMs),
    expires_at: caller === null ? null : instant(caller.session.expiresAtMs),
    server_time: instant(runtime.wallMs()),
    instance: {
      ...summary(),
      operator_sign_in: sessions.accepts.operator,
      account_sign_in: sessions.accepts.account,
    },
  };
}

const ROLES = { none: "none", operator: "operator", agent: "account" } as const;
