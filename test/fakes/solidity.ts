// Compiles the contracts of the local chains, so that what is committed beside each source can be
// compared with it and written anew.
import { readFileSync } from "node:fs";
import solc from "solc";
import { z } from "zod";

/** A contract of the local chains: what of it is committed, and where. */
export interface Contract {
  readonly name: string;
  /** Creation code, to deploy it by a transaction; or the code itself, to put it at an address. */
  readonly part: "bytecode" | "deployedBytecode";
  readonly file: URL;
}

const FOLDER = new URL("../../src/devnet/payments/contracts/", import.meta.url);
const Code = z.object({ object: z.string().regex(/^[0-9a-f]*$/) });
const Output = z.object({
  errors: z.array(z.object({ formattedMessage: z.string() })).default([]),
  contracts: z
    .record(
      z.string(),
      z.record(z.string(), z.object({ evm: z.object({ bytecode: Code, deployedBytecode: Code }) })),
    )
    .default({}),
});

/** Every contract of the local chains. */
export const CONTRACTS: readonly Contract[] = [
  { name: "DevelopmentDollar", part: "bytecode", file: new URL("DevelopmentDollar.bin", FOLDER) },
  {
    name: "ChannelReserve",
    part: "deployedBytecode",
    file: new URL("ChannelReserve.bin-runtime", FOLDER),
  },
];

/**
 * Its code as 0x… text with a line feed; throws with the compiler's words where it finds anything
 * to say.
 */
export function compiled({ name, part }: Contract): string {
  const source = `${name}.sol`;
  const input = {
    language: "Solidity",
    sources: { [source]: { content: readFileSync(new URL(source, FOLDER), "utf8") } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      evmVersion: "cancun",
      metadata: { appendCBOR: false, bytecodeHash: "none" },
      outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.deployedBytecode.object"] } },
    },
  };
  const { errors, contracts } = Output.parse(
    JSON.parse(String(solc.compile(JSON.stringify(input)))),
  );
  const code = contracts[source]?.[name]?.evm[part].object;
  if (errors.length > 0 || code === undefined)
    throw new Error(
      errors.map((it) => it.formattedMessage).join("\n") || `${source} holds no ${name}`,
    );
  return `0x${code}\n`;
}
