// Sessions in the console: opened with the operator token, a management token or a sign-in link,
// found by the cookie of a request, and ended with their token. Knows no operation.

import type { AddressLimit } from "../../core/billing/address-limit.ts";
import { type ApiFault, apiFault, limited } from "../../core/faults/api-fault.ts";
import { keepNewest } from "../../core/newest.ts";
import {
  type ManagementToken,
  managementTokenById,
  managementTokenBySecret,
  managementTokenEnd,
} from "../../hosted/keys/management-token.ts";
import type { ConsoleSession, OperatorRecords } from "../../hosted/operator/stored-records.ts";
import type { Runtime } from "../../runtime.ts";
import { hashOf, isSameSecret, newSecret, readSecret } from "../../secrets/secret.ts";
import type { Store } from "../../shared/store/store.ts";
import type { OperatorCaller } from "../contract/operation.ts";
import type { CookieRequest } from "../http/console-cookie.ts";
import { isOperatorToken } from "../http/local-caller.ts";

/** A sign-in link of a development instance. */
export interface SignInLink {
  /** SHA-256 of its secret, base64url. */
  readonly secretHash: string;
  /** Wall clock. */
  readonly expiresAtMs: number;
}

export interface ConsoleSessionParts {
  readonly runtime: Runtime;
  readonly records: OperatorRecords;
  /** Null = no operator token is configured. */
  readonly operatorToken: string | null;
  /** Null = there was none. */
  readonly signInLink: SignInLink | null;
  /** Where management tokens are; null = the service has no accounts. */
  readonly store: Store | null;
  /** Limits tries to sign in, by address. */
  readonly tries: AddressLimit;
}

/** A session with the one whom it stands for. */
export type SessionCaller = (OperatorCaller | AgentCaller) & { readonly session: ConsoleSession };

interface AgentCaller {
  readonly kind: "agent";
  readonly agent: ManagementToken;
}

/** A session that was just opened, and the id for its cookie. */
export interface OpenedSession {
  readonly kind: "opened";
  readonly id: string;
  readonly caller: SessionCaller;
}

type SignInFault = ApiFault<"unauthorized" | "rate_limited" | "forbidden">;

/** How long a session lasts. */
export const SESSION_MS = 43_200_000;
/** What sessions end with that were opened by a link, where no operator token is configured. */
const NO_TOKEN = "none";
const SHOWN_CHARS = 8;
/** Addresses of operators that are remembered. */
const MAX_OPERATORS = 1_000;

/** The sessions of an instance. */
export class ConsoleSessions {
  readonly #parts: ConsoleSessionParts;
  /** Addresses that had the operator token, the last one last. */
  readonly #operators = new Set<string>();
  /** Whether a token of this kind can sign in. */
  readonly accepts: { readonly operator: boolean; readonly account: boolean };

  constructor(parts: ConsoleSessionParts) {
    this.#parts = parts;
    const { operatorToken, signInLink, store } = parts;
    this.accepts = {
      operator: operatorToken !== null || signInLink !== null,
      account: store !== null,
    };
  }

  /** Opens a session in place of the one with the id `replaced`; null = of none. */
  async signIn(
    token: string,
    { address, replaced }: { readonly address: string; readonly replaced: string | null },
  ): Promise<OpenedSession | SignInFault> {
    const { tries, runtime } = this.#parts;
    const waitMs = tries.take(address, runtime.now());
    const refusal = limited(waitMs, "too many tries to sign in came from this address");
    if (refusal !== null) return refusal;
    const owner = await ownerOf(this.#parts, token);
    return "kind" in owner ? owner : this.#open(owner, replaced);
  }

  /**
   * Whether a request has the operator token; a number = too many wrong ones came from its address,
   * for so long (ms). Addresses that had the right one before are not concerned.
   */
  operatorBy(token: string | null, address: string): boolean | number {
    const { tries, runtime, operatorToken } = this.#parts;
    if (token === null || operatorToken === null) return false;
    const waitMs = this.#operators.has(address) ? 0 : tries.waitMs(address, runtime.now());
    if (waitMs > 0) return waitMs;
    if (!isOperatorToken(token, operatorToken)) {
      tries.take(address, runtime.now());
      return false;
    }
    this.#operators.delete(address);
    this.#operators.add(address);
    keepNewest(this.#operators, MAX_OPERATORS);
    return true;
  }

  /** Whether the operator's token or session is still valid, for answers that go on. */
  async isValid({ sessionHash }: OperatorCaller): Promise<boolean> {
    if (sessionHash === null) return this.#parts.operatorToken !== null;
    return (await liveCallerOf(this.#parts, sessionHash))?.kind === "operator";
  }

  async signOut(id: string): Promise<void> {
    await this.#parts.records.endSession(hashOf(id));
  }

  /** The caller by the cookie of a request; null = its session has ended, or never was. */
  async callerOf(id: string): Promise<SessionCaller | null> {
    return readSecret(id) === "session" ? liveCallerOf(this.#parts, hashOf(id)) : null;
  }

  async #open(
    { role, tokenRef }: TokenOwner,
    replaced: string | null,
  ): Promise<OpenedSession | SignInFault> {
    const { records, runtime } = this.#parts;
    if (replaced !== null) await records.endSession(hashOf(replaced));
    const id = newSecret("session");
    const createdAtMs = runtime.wallMs();
    const expiresAtMs = createdAtMs + SESSION_MS;
    await records.addSession({ idHash: hashOf(id), role, tokenRef, createdAtMs, expiresAtMs });
    const caller = await this.callerOf(id);
    // The token may have been revoked meanwhile.
    return caller === null ? refused("the token has just ended") : { kind: "opened", id, caller };
  }
}

/** The caller of a session by the hash of its id; null = it has ended, or its token has. */
async function liveCallerOf(
  { runtime, records, store, operatorToken }: ConsoleSessionParts,
  idHash: string,
): Promise<SessionCaller | null> {
  const session = await records.session(idHash, runtime.wallMs());
  if (session === null) return null;
  switch (session.role) {
    case "operator":
      return isSameSecret(session.tokenRef, refOf(operatorToken)) ? operatorIn(session) : null;
    case "account": {
      const agent = store === null ? null : await managementTokenById(store, session.tokenRef);
      return agent === null || managementTokenEnd(agent, runtime.wallMs()) !== null
        ? null
        : { kind: "agent", agent, session };
    }
    case "used_link":
      return null;
  }
}

/** Whom a token stands for. */
interface TokenOwner {
  readonly role: "operator" | "account";
  readonly tokenRef: string;
}

async function ownerOf(
  parts: ConsoleSessionParts,
  token: string,
): Promise<TokenOwner | ApiFault<"unauthorized">> {
  const { runtime, operatorToken, store } = parts;
  const operator = { role: "operator", tokenRef: refOf(operatorToken) } as const;
  if (isOperatorToken(token, operatorToken)) return operator;
  switch (readSecret(token)) {
    case "sign_in":
      return (await takeLink(parts, token))
        ? operator
        : refused("the sign-in link was used, or has expired");
    case "token": {
      const agent = store === null ? null : await managementTokenBySecret(store, token);
      if (agent === null) return refused("this management token does not exist");
      const end = managementTokenEnd(agent, runtime.wallMs());
      if (end !== null) return refused(`the management token is ${end}`);
      return { role: "account", tokenRef: agent.id };
    }
    case "key":
      return refused("a key for RPC calls opens no session");
    default:
      return refused("this token does not exist, or is cut off");
  }
}

/** Uses a sign-in link up; false = it is unknown, expired or used. */
async function takeLink(
  { runtime, records, signInLink }: ConsoleSessionParts,
  secret: string,
): Promise<boolean> {
  const nowMs = runtime.wallMs();
  if (signInLink === null || nowMs >= signInLink.expiresAtMs) return false;
  const { secretHash, expiresAtMs } = signInLink;
  if (!isSameSecret(hashOf(secret), secretHash)) return false;
  const used = { idHash: secretHash, role: "used_link", tokenRef: "link" } as const;
  return records.addSession({ ...used, createdAtMs: nowMs, expiresAtMs });
}

function refOf(operatorToken: string | null): string {
  return operatorToken === null ? NO_TOKEN : hashOf(operatorToken);
}

function operatorIn(session: ConsoleSession): SessionCaller {
  const { idHash } = session;
  const actor = `session ${idHash.slice(0, SHOWN_CHARS)}`;
  return { kind: "operator", actor, sessionHash: idHash, session };
}

function refused(message: string): ApiFault<"unauthorized"> {
  return apiFault("unauthorized", message, {
    nextAction: "send the operator token, or the management token of an account",
  });
}

/** Why a request may not use its cookie; null = it may. */
export function cookieRefusal(
  method: string | undefined,
  { isSameOrigin, isJson }: CookieRequest,
): ApiFault<"forbidden"> | null {
  if (method === "GET" || method === "HEAD") return null;
  if (!isSameOrigin)
    return apiFault("forbidden", "changes by cookie are accepted from pages of this service only", {
      nextAction: "send a token as Authorization: Bearer <token>, or Sec-Fetch-Site: same-origin",
    });
  return isJson
    ? null
    : apiFault("forbidden", "a change by cookie is not declared as JSON", {
        nextAction: "send Content-Type: application/json",
      });
}
