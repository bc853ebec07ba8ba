// The console of an instance beside its pages: records, sessions, and a line in the log for each
// action of an operator.
import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import type { OpenAddressLimit } from "../../core/workers/shared-address-limits.ts";
import type { OperatorRecords } from "../../hosted/operator/stored-records.ts";
import type { Runtime } from "../../runtime.ts";
import { hashOf, newSecret } from "../../secrets/secret.ts";
import type { Store } from "../../shared/store/store.ts";
import { createActionLog } from "../../web/api/action-log.ts";
import { ConsoleSessions } from "../../web/api/console-sessions.ts";
import type { RecordAction } from "../../web/api/parts.ts";

export interface OperatorConsoleParts {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly records: OperatorRecords;
  /** Where accounts are; null = the service has none. */
  readonly accounts: Store | null;
  readonly openLimit: OpenAddressLimit;
  /** The name of this node; null = the service is one node. */
  readonly node: string | null;
}

/** Tries to sign in, by address. */
const TRIES = { perSecond: 10 / 60, burst: 10 };

/** The console of an instance. */
export class OperatorConsole {
  readonly records: OperatorRecords;
  readonly sessions: ConsoleSessions;
  readonly recordAction: RecordAction;

  constructor(parts: OperatorConsoleParts) {
    const { config, runtime, records, accounts, openLimit } = parts;
    const { operatorToken, signInLink } = config.server;
    this.records = records;
    this.sessions = new ConsoleSessions({
      runtime,
      records,
      operatorToken,
      signInLink,
      store: accounts,
      tries: openLimit("console sign-ins", TRIES),
    });
    this.recordAction = createActionLog(parts);
  }
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
