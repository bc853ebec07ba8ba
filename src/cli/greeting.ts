// The lines that `svc serve` prints once it is ready: its URLs, and a first call.
import { isIPv6 } from "node:net";
import type { Config } from "../config/config.ts";
import type { LocalChain } from "./local-chain.ts";

/** A service that is ready. */
export interface ReadyService {
  readonly config: Config;
  readonly port: number;
  /** Null = there is none. */
  readonly local: LocalChain | null;
  /** Opens one session of the operator in the console; null = there is no such link. */
  readonly signIn: string | null;
  /** Where a configuration file would be, where none is; null = there is one. */
  readonly lackingFile: string | null;
}

/** Prints the URLs of the service. */
export function greet({ config, port, local, signIn, lackingFile }: ReadyService): void {
  const { publicUrl, host } = config.server;
  // The one address of all these lines: a session of the console is valid at its own host alone.
  const base = publicUrl ?? `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
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
${signIn === null ? "" : `  sign in    ${base}/dashboard/sign-in#sign-in=${signIn}  (once, as the operator)\n`}\
${lackingFile === null ? "" : fileLines(lackingFile, base)}
${local?.payingLines(base) ?? ""}`);
}

function fileLines(file: string, base: string): string {
  return `
  No file says what to serve: every known chain is served by its public addresses, by name or by id
  (${base}/rpc/8453), to this machine only. A file of your own would be
  ${file}; \`svc init\` writes it.
`;
}
