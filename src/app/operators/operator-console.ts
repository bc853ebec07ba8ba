// The console of an instance beside its pages: records, sessions, and a line in the log for each
// action of an operator.
import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import { OperatorRecords } from "../../hosted/operator/stored-records.ts";
import type { Runtime } from "../../runtime.ts";
import { hashOf, newSecret } from "../../secrets/secret.ts";
import type { Store } from "../../shared/store/store.ts";
import { createActionLog } from "../../web/api/action-log.ts";
import { ConsoleSessions } from "../../web/api/console-sessions.ts";
import type { RecordAction } from "../../web/api/parts.ts";
import { limitsOf, type ServiceParts } from "../service-parts.ts";

/** The console of an instance. */
export interface OperatorConsole {
  readonly records: OperatorRecords;
  readonly sessions: ConsoleSessions;
  readonly recordAction: RecordAction;
}

/** Tries to sign in, by address. */
const TRIES = { perSecond: 10 / 60, burst: 10 };

/** What a console is opened with. */
interface ConsoleParts {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly service: ServiceParts;
  /** The name of this node; null = the service is one node. */
  readonly node: string | null;
}

/** Opens the console over a store. */
export function openConsole(store: Store, parts: ConsoleParts): OperatorConsole {
  const { config, runtime } = parts;
  const { operatorToken, signInLink } = config.server;
  const records = new OperatorRecords(store);
  const tries = limitsOf(parts)("console sign-ins", TRIES);
  const accounts = config.hosted === null ? null : store;
  const signIn = { runtime, records, operatorToken, signInLink, tries, store: accounts };
  return {
    records,
    sessions: new ConsoleSessions(signIn),
    recordAction: createActionLog({ ...parts, records }),
  };
}

/** How long a sign-in link works. */
const LINK_MS = 3_600_000;

/** A link that opens one session of the operator. */
export interface NewSignInLink {
  readonly secret: string;
  readonly link: NonNullable<Config["server"]["signInLink"]>;
}

/** Makes a link. */
export function newSignInLink({ wallMs }: Runtime): NewSignInLink {
  const secret = newSecret("sign_in");
  return { secret, link: { secretHash: hashOf(secret), expiresAtMs: wallMs() + LINK_MS } };
}
