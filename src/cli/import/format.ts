// Recognises the format of an imported file by its content, and parses it. TOML is read by a
// library that only this command loads. Shows no text of the file.
import { parseAllDocuments } from "yaml";
import { type Fields, isRecord } from "../../core/fields.ts";

export const FORMATS = ["erpc", "proxyd", "lasso", "nodecore"] as const;

/** A format that can be imported. */
export type ImportFormat = (typeof FORMATS)[number];

/** A parsed file, or why it cannot be imported. */
export type ParsedImport =
  | { readonly ok: true; readonly format: ImportFormat; readonly data: Fields }
  | { readonly ok: false; readonly reason: string };

const MAX_BYTES = 10_000_000;
const MAX_ALIASES = 10_000;

/** Parses a file; `wanted` = the format that the caller names, null = its content decides. */
export async function parseImport(
  text: string,
  wanted: ImportFormat | null,
): Promise<ParsedImport> {
  const fail = (reason: string): ParsedImport => ({ ok: false, reason });
  if (Buffer.byteLength(text) > MAX_BYTES) return fail(`is larger than ${MAX_BYTES} bytes`);
  const isToml = wanted === null ? looksLikeToml(text) : wanted === "proxyd";
  if (wanted === null && /\bcreateConfig\s*\(/.test(text))
    return fail("is a program: eRPC prints it as YAML by `erpc dump --format yaml`; import that");
  const data = isToml ? await tomlOf(text) : yamlOf(text);
  if (data === null) return fail(isToml ? "is not valid TOML" : "is not valid YAML");
  const format = wanted ?? formatOf(data);
  if (format === null)
    return fail(
      data["profiles"] === undefined
        ? `is of no format that is known; name it by --from ${FORMATS.join("|")}`
        : "is a configuration of svc already",
    );
  return { ok: true, format, data };
}

function looksLikeToml(text: string): boolean {
  return /^\s*\[{1,2}[A-Za-z_][\w.-]*\]{1,2}\s*(?:#.*)?$/m.test(text);
}

function formatOf(data: Fields): ImportFormat | null {
  if (isRecord(data["backends"]) || isRecord(data["backend_groups"])) return "proxyd";
  if (data["upstream-config"] !== undefined) return "nodecore";
  if (Array.isArray(data["projects"])) return "erpc";
  const chains = data["chains"];
  if (!isRecord(chains) || data["profiles"] !== undefined) return null;
  const all = Object.values(chains);
  return all.some((chain) => isRecord(chain) && Array.isArray(chain["providers"])) ? "lasso" : null;
}

async function tomlOf(text: string): Promise<Fields | null> {
  const { parse } = await import("smol-toml");
  try {
    return parse(text);
  } catch {
    return null;
  }
}

/** The members of all documents in one record: a front matter is a document of its own. */
function yamlOf(text: string): Fields | null {
  try {
    const documents = [...parseAllDocuments(text, { merge: true, uniqueKeys: false })];
    if (documents.some(({ errors }) => errors.length > 0)) return null;
    const records = documents.map((each): unknown => each.toJS({ maxAliasCount: MAX_ALIASES }));
    const members = records.filter(isRecord).flatMap((record) => Object.entries(record));
    return members.length === 0 ? null : Object.fromEntries(members);
  } catch {
    return null;
  }
}
