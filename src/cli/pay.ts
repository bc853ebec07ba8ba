// `svc pay`: pays an MPP offer by EIP-3009.
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { type CommandInput, codeOf, refuse } from "./command.ts";

/**
 * Pays an offer by EIP-3009. The wallet's key comes from a file or the environment, because other
 * users of the machine can read command lines.
 */
export async function payOffer({ operands: [url = ""], flags, env }: CommandInput): Promise<void> {
  const { pay } = await import("../devnet/payments/pay.ts");
  const { method, data, rpc, "max-usd": maxUsd = "1", "key-file": keyFile } = flags;
  if (!URL.canParse(url)) return refuse("svc: the operand is not a URL");
  const key = keyFile === undefined ? env["SVC_PAY_KEY"] : readKey(keyFile);
  const isPaid = await pay({
    url,
    method: method ?? (data === undefined ? "GET" : "POST"),
    data: data ?? null,
    rpcUrl: rpc ?? null,
    maxUsd,
    key: key === undefined ? null : walletKeyOf(key),
    pause: (ms: number) => setTimeout(ms),
    print: (line: string) => console.log(line),
    say: (line: string) => console.error(`svc: ${line}`),
  });
  if (!isPaid) process.exitCode = 1;
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
