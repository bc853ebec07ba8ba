// `svc pay`: pays an MPP offer by EIP-3009.
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { errorText } from "../core/fields.ts";
import { type CommandInput, codeOf, refuse } from "./command.ts";
import { usage } from "./help.ts";

/**
 * Pays an offer by EIP-3009. The wallet's key comes from a file or the environment, because other
 * users of the machine can read command lines.
 */
export async function payOffer({ args, env }: CommandInput): Promise<void> {
  const { pay } = await import("../devnet/payments/pay.ts");
  const text = { type: "string" } as const;
  const options = { method: text, data: text, rpc: text, "max-usd": text, "key-file": text };
  let parsed: {
    readonly values: Readonly<Record<string, string | undefined>>;
    readonly positionals: readonly string[];
  };
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return refuse(`svc: ${errorText(error)}\n${usage()}`);
  }
  const { method, data, rpc, "max-usd": maxUsd = "1", "key-file": keyFile } = parsed.values;
  const [url] = parsed.positionals;
  if (url === undefined || parsed.positionals.length > 1 || !URL.canParse(url))
    return refuse(usage());
  const key = keyFile === undefined ? env["SVC_PAY_KEY"] : readKey(keyFile);
  const given = {
    url,
    method: method ?? (data === undefined ? "GET" : "POST"),
    data: data ?? null,
    rpcUrl: rpc ?? null,
    maxUsd,
  };
  const outcome = {
    pause: (ms: number) => setTimeout(ms),
    print: (line: string) => console.log(line),
    say: (line: string) => console.error(`svc: ${line}`),
  };
  if (!(await pay({ ...given, ...outcome, key: key === undefined ? null : walletKeyOf(key) })))
    process.exitCode = 1;
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return refuse(`svc: ${file} cannot be read (${codeOf(error)})`);
  }
}

function walletKeyOf(text: string): `0x${string}` {
  const digits = /^\s*0x([0-9a-fA-F]{64})\s*$/.exec(text)?.[1];
  return digits === undefined
    ? refuse("svc: the wallet's key is not 0x and 64 hex digits")
    : `0x${digits}`;
}
