// `svc import`: makes a `svc.yml` of another gateway's configuration. Keys of the imported file go
// to environment variables, and no output holds them but the file that --keys names.
import { readFileSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../config/config.ts";
import { formatFaults } from "../../config/config-fault.ts";
import { type KnownChain, knownChain } from "../../presets/chains.ts";
import { type CommandInput, codeOf, refuse } from "../command.ts";
import { findChainId } from "./chain-id.ts";
import type { ConfigDraft, DraftProvider } from "./draft.ts";
import { fromErpc } from "./erpc.ts";
import { FORMATS, type ImportFormat, parseImport } from "./format.ts";
import { ImportedValue } from "./imported-value.ts";
import { fromLasso } from "./lasso.ts";
import { fromNodecore } from "./nodecore.ts";
import { fromProxyd } from "./proxyd.ts";
import { type ChainName, rendered } from "./render.ts";
import { type ImportedKey, type References, Secrets } from "./secrets.ts";

/** What a file becomes. */
export interface Imported {
  readonly format: ImportFormat;
  /** The text of the `svc.yml`. */
  readonly text: string;
  readonly keys: readonly ImportedKey[];
}

/** How an import finds out what the file leaves open. */
export interface ImportParts {
  readonly from: ImportFormat | null;
  /** The chain of providers whose chain the file does not say; null = they are asked. */
  readonly chainId: number | null;
  /** The environment, in which the variables of the file are looked up. */
  readonly env: CommandInput["env"];
  /** The chain id that a provider answers with; null = it does not answer. */
  readonly chainIdOf: typeof findChainId;
}

const NAMES: Readonly<Record<ImportFormat, string>> = {
  erpc: "eRPC",
  proxyd: "proxyd",
  lasso: "Lasso",
  nodecore: "nodecore",
};
const REFERENCES: Readonly<Record<ImportFormat, References>> = {
  erpc: "shell",
  proxyd: "whole",
  lasso: "braces",
  nodecore: "shell",
};

/** Converts the text of a file; the reason where it cannot be. */
export async function imported(text: string, parts: ImportParts): Promise<Imported | string> {
  const parsed = await parseImport(text, parts.from);
  if (!parsed.ok) return parsed.reason;
  const { format, data } = parsed;
  const secrets = new Secrets(REFERENCES[format], text);
  const found = draftOf(format, new ImportedValue(data), { secrets, ...parts });
  const keys = Object.fromEntries(secrets.keys.map(({ name, value }) => [name, value]));
  const draft = await located(found, { ...parts, env: { ...parts.env, ...keys } });
  const isEmpty = draft.profiles.every(
    ({ providers, vendors }) => providers.length + vendors.length === 0,
  );
  if (isEmpty && !draft.servesAll) return "names no provider that svc can ask";
  const placed =
    draft.servesAll ||
    draft.profiles.some(
      ({ providers, vendors }) =>
        vendors.length > 0 || providers.some(({ chainId }) => chainId !== null),
    );
  if (!placed) return "does not say which chain it serves, and no provider told: add --chain";
  const head = headOf(format, secrets.keys);
  return { format, text: rendered(draft, { head, chainOf }), keys: secrets.keys };
}

interface DraftParts extends Pick<ImportParts, "chainId"> {
  readonly secrets: Secrets;
}

function draftOf(
  format: ImportFormat,
  file: ImportedValue,
  { secrets, chainId }: DraftParts,
): ConfigDraft {
  if (format === "erpc") return fromErpc(file, secrets);
  if (format === "proxyd") return fromProxyd(file, secrets, chainId);
  if (format === "lasso") return fromLasso(file, secrets);
  return fromNodecore(file, { secrets, chainIdOf: (name) => knownChain(name)?.chainId ?? null });
}

/** The draft with the chains of providers that the file does not give, one after the other. */
async function located(
  draft: ConfigDraft,
  { chainId, chainIdOf, env }: ImportParts,
): Promise<ConfigDraft> {
  const profiles = [];
  for (const profile of draft.profiles) {
    const providers: DraftProvider[] = [];
    for (const provider of profile.providers)
      providers.push({
        ...provider,
        chainId: provider.chainId ?? chainId ?? (await chainIdOf(provider.settings, env)),
      });
    profiles.push({ ...profile, providers });
  }
  return { ...draft, profiles };
}

/** The name of a chain and what a file has to say of it: nothing where it is known by its id. */
function chainOf(chainId: number, alias: string | null): ChainName {
  const known: KnownChain | null = knownChain(String(chainId));
  const isKnown = known !== null && !known.isShared;
  const key = isKnown ? known.chainName : (alias ?? `chain-${chainId}`);
  const isNew = alias !== null && alias !== key && knownChain(alias)?.chainId !== chainId;
  return {
    key,
    settings: {
      ...(isKnown ? {} : { chain_id: chainId }),
      ...(isNew ? { aliases: [alias, ...(known?.aliases ?? [])] } : {}),
    },
  };
}

function headOf(format: ImportFormat, keys: readonly ImportedKey[]): readonly string[] {
  const variables = keys.map(({ name, path }) => `  ${name}: ${path}`);
  const lines = [
    "Before the start, set these environment variables. Each takes the place of a key that stands",
    "in the imported file:",
    ...variables,
  ];
  return [
    `Made by \`svc import\` of a configuration of ${NAMES[format]}. Comments say what differs.`,
    "Every setting: docs/configuration.md",
    ...(keys.length === 0 ? [] : ["", ...lines]),
  ];
}

/** Imports the file that the command names. */
export async function importConfig({ operands, flags, env }: CommandInput): Promise<void> {
  const [file = ""] = operands;
  const { from, chain, out, keys: envFile } = flags;
  const format = FORMATS.find((name) => name === from) ?? null;
  if (from !== undefined && format === null)
    return refuse(`svc: --from is one of ${FORMATS.join(", ")}`);
  const known = chain === undefined ? null : chainNumber(chain);
  if (chain !== undefined && known === null)
    return refuse(`svc: --chain is a chain id, or the name of a chain that is known`);
  const parts = { from: format, chainId: known, env, chainIdOf: findChainId };
  const result = await imported(textIn(file), parts);
  if (typeof result === "string") return refuse(`svc: ${file} ${result}`);
  const faults = faultsOf(result, env);
  if (faults !== null) console.error(`The new file needs another look:\n${faults}`);
  if (out === undefined) process.stdout.write(result.text);
  else write(out, result.text, 0o644);
  if (envFile !== undefined) write(envFile, variablesOf(result.keys), 0o600);
  for (const line of summaryOf(result, { file, out, envFile })) console.error(line);
  if (faults !== null) process.exitCode = 1;
}

function textIn(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return refuse(`svc: ${file} cannot be read (${codeOf(error)})`);
  }
}

function write(file: string, text: string, mode: number): void {
  try {
    writeFileSync(file, text, { flag: "wx", mode });
  } catch (error) {
    refuse(`svc: ${file} cannot be written (${codeOf(error)})`);
  }
}

function chainNumber(text: string): number | null {
  if (/^\d{1,15}$/.test(text)) return Number(text) > 0 ? Number(text) : null;
  return knownChain(text)?.chainId ?? null;
}

/** Stands for a variable that is not set, where the file is checked. */
const UNSET = "https://unset.invalid/";

/** What is wrong with the new file; variables need not be set yet. */
function faultsOf({ text }: Imported, env: CommandInput["env"]): string | null {
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => name);
  const whole = new Set([...text.matchAll(/url: \$\{(\w+)\}$/gm)].map(([, name = ""]) => name));
  const unset = names.map((name) => [name, whole.has(name) ? UNSET : "unset"]);
  const result = loadConfig({
    file: "svc.yml",
    text,
    env: { ...Object.fromEntries(unset), ...env, NODE_ENV: "development" },
    flags: {},
  });
  return result.ok ? null : formatFaults(result.faults);
}

function variablesOf(keys: readonly ImportedKey[]): string {
  return keys.map(({ name, value }) => `${name}='${value.replaceAll("'", "'\\''")}'\n`).join("");
}

interface WrittenFiles {
  readonly file: string;
  readonly out: string | undefined;
  readonly envFile: string | undefined;
}

function summaryOf({ format, text, keys }: Imported, files: WrittenFiles): readonly string[] {
  const { file, out, envFile } = files;
  const notes = text.split("\n").filter((line) => /^\s*# - /.test(line)).length;
  const names = keys.map(({ name, path }) => `  ${name}  (${path})`);
  const advice =
    envFile === undefined
      ? `Set these variables to the keys that stand in ${file}, or add --keys FILE:`
      : `The keys of ${file} stand in ${envFile}: load it before the start.`;
  return [
    `${file}: imported from ${NAMES[format]}; ${notes} comments say what differs.`,
    ...(keys.length === 0 ? [] : [advice, ...names]),
    `Check it: svc check-config ${out ?? "svc.yml"}`,
  ];
}
