// The lines that `svc serve` prints once it is ready: its URLs, and a first call.
import { isIPv6 } from "node:net";
import type { Config } from "../config/config.ts";
import type { LocalChain } from "./local-chain.ts";

/** What belongs to this start. */
export interface Greeting {
  readonly local: LocalChain | null;
  /** Opens one session of the operator in the console; null = there is no such link. */
  readonly signIn: string | null;
}

/** Prints the URLs of the service. */
export function greet(config: Config, port: number, { local, signIn }: Greeting): void {
  const base = baseUrlOf(config, port);
  const profile =
    config.profiles.find((candidate) => candidate.slug === "public") ?? config.profiles[0];
  const served = config.chains.find((candidate) => profile?.chains.has(candidate.chainName));
  const chain = config.devnet ? "local" : (served?.chainName ?? "ethereum");
  console.log(`
svc is ready at ${base}

  curl -s ${base}/rpc/${chain} -H 'content-type: application/json' \\
       -d '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'

${config.hosted === null ? "" : `  a key      curl -s -X POST ${base}/api/v1/agent/keys\n`}  websocket  ${base.replace(/^http/, "ws")}/ws/rpc/${chain}
  console    ${base}/dashboard
  chains     ${base}/api/chains
  all of it  ${base}/llms.txt
${signIn === null ? "" : `  sign in    ${signInLink(base, signIn)}  (once, as the operator)\n`}
${local?.payingLines(base) ?? ""}`);
}

/** The one address of all these lines: a session of the console is valid at its own host alone. */
function baseUrlOf({ server: { publicUrl, host } }: Config, port: number): string {
  return publicUrl ?? `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The page of the console that takes the code out of its address and signs in. */
function signInLink(base: string, code: string): string {
  return `${base}/dashboard/sign-in#sign-in=${code}`;
}
