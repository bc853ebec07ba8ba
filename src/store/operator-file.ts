// Keeps cordons and actions of operators in a file of its own in `data_dir`, where there is no
// database: written whole, beside the old one, and put in its place.
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";

/** The name of the file. */
export const OPERATOR_FILE = "operator.json";
const MAX_BYTES = 16_000_000;

/** What was kept; null = nothing was. Throws where it cannot be read. */
export async function readOperatorFile(dataDir: string): Promise<unknown> {
  const text = await readFile(join(dataDir, OPERATOR_FILE), "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) return null;
  if (text.length > MAX_BYTES) throw new Error(`${OPERATOR_FILE} is too long to be what svc wrote`);
  return JSON.parse(text);
}

/** Replaces what was kept; the file is whole at every moment, also after a power cut. */
export async function writeOperatorFile(dataDir: string, records: object): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, OPERATOR_FILE);
  const next = `${path}.next`;
  const handle = await open(next, "w", 0o600);
  try {
    await handle.writeFile(JSON.stringify(records));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, path);
}
