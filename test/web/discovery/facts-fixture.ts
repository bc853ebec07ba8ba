// Facts for tests of documents, read from configurations like those of an instance. Every secret in
// them is one word.
import {
  type DocumentFacts,
  factsOf,
  type Site,
  siteOf,
} from "../../../src/web/discovery/facts.ts";
import { configOf } from "../../fakes/service.ts";

/** Stands in every secret of the configuration. */
export const SECRET = "hush-hush-hush-hush-hush-hush";

/** Where the instance is. */
export const SITE: Site = siteOf("http://rpc.example:4000");

const provider = (id: string, ws: boolean) => ({
  id,
  name: id,
  url: `https://user:${SECRET}@${id}.example/${SECRET}`,
  ...(ws ? { ws_url: `wss://user:${SECRET}@${id}.example/${SECRET}` } : {}),
});

/**
 * A configuration as an operator writes it, with other values than the defaults where `hosted` and
 * `extra` say so.
 */
export function configuration(
  hosted: Readonly<Record<string, unknown>>,
  extra: Readonly<Record<string, unknown>> = {},
): string {
  return JSON.stringify({
    storage: { url: `postgres://svc:${SECRET}@db.example/svc` },
    chains: {
      ethereum: { chain_id: 1, name: "Ethereum Mainnet", aliases: ["mainnet"] },
      base: { chain_id: 8453, name: "Base" },
    },
    profiles: {
      public: {
        chains: {
          ethereum: { providers: [provider("vendor-one", true)] },
          base: { providers: [provider("vendor-two", false)] },
        },
      },
      team: { chains: { ethereum: { providers: [provider("vendor-three", false)] } } },
    },
    hosted,
    ...extra,
  });
}

/** The facts of such a configuration. */
export function facts(
  hosted: Readonly<Record<string, unknown>>,
  extra: Readonly<Record<string, unknown>> = {},
): DocumentFacts {
  return factsOf(configOf(configuration(hosted, extra)), "1.2.3");
}

/** A hosted instance with the operator's endpoints. */
export const HOSTED: DocumentFacts = facts({ enabled: true, operator_token: SECRET });

/** A plain router. */
export const ROUTER: DocumentFacts = facts({ enabled: false });

/** Where a rail's money goes. */
export const RECIPIENT = `0x${"11".repeat(20)}`;
/** A rail's token. */
export const TOKEN = `0x${"20".repeat(20)}`;
/** The secret key of a settlement wallet. */
export const WALLET_KEY = `0x${"ab".repeat(32)}`;
const RAIL = { rpc_url: `https://node.example/${SECRET}`, recipient: RECIPIENT };

/** Rails of every kind. */
export const RAILS = {
  tempo: { ...RAIL, kind: "tempo", chain_id: 4217, token: TOKEN },
  evm: {
    ...RAIL,
    kind: "evm",
    chain_id: 8453,
    token: { address: TOKEN, name: "USD Coin", version: "2" },
    wallet_key: WALLET_KEY,
  },
  session: { ...RAIL, kind: "session", chain_id: 4217, token: TOKEN, wallet_key: WALLET_KEY },
} as const;

/** A hosted instance that sells by these rails. */
export function selling(rails: readonly object[], more: object = {}): DocumentFacts {
  return facts({ enabled: true, payments: { rails, ...more } });
}
