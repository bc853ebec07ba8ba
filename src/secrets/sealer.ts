// Secrets at rest: texts that only this service can read, with a key derived from the secret it was
// given. Knows no table, and never says why a text does not open.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

const VERSION = "v1";
const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const KEY_ID_BYTES = 6;
const IV_BYTES = 12;
const TAG_BYTES = 16;

interface SealingKey {
  readonly id: string;
  readonly key: Buffer;
}

/** Seals texts and opens them again. */
export class Sealer {
  readonly #current: SealingKey;
  readonly #known: ReadonlyMap<string, Buffer>;

  /** Seals with `secret`; also opens texts that were sealed with `previous` (null = none). */
  constructor(secret: string, previous: string | null) {
    this.#current = keyOf(secret);
    const known = previous === null ? [this.#current] : [keyOf(previous), this.#current];
    this.#known = new Map(known.map(({ id, key }) => [id, key]));
  }

  /** `context` = what it belongs to; it opens nowhere else. */
  seal(text: string, context: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#current.key, iv, {
      authTagLength: TAG_BYTES,
    }).setAAD(Buffer.from(context));
    const sealed = [iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
    return `${VERSION}.${this.#current.id}.${Buffer.concat(sealed).toString("base64url")}`;
  }

  /** Null = sealed with a secret that is not known any more, for something else, or damaged. */
  open(sealed: string, context: string): string | null {
    const [version, id = "", bytes = ""] = sealed.split(".");
    const key = this.#known.get(id);
    return version === VERSION && key !== undefined
      ? opened(key, Buffer.from(bytes, "base64url"), context)
      : null;
  }

  /** Whether texts may be sealed with another secret than the present one. */
  get hasPrevious(): boolean {
    return this.#known.size > 1;
  }

  /** Whether it was sealed with the present secret. */
  isCurrent(sealed: string): boolean {
    return sealed.startsWith(`${VERSION}.${this.#current.id}.`);
  }
}

/**
 * The secret of an instance that was given none: made once, in a file of the data directory that
 * only its owner may read.
 */
export function localSecret(dataDir: string): string {
  const path = join(dataDir, "svc.secret");
  mkdirSync(dataDir, { recursive: true, mode: DIRECTORY_MODE });
  if (!existsSync(path)) createSecret(path);
  const secret = readFileSync(path, "utf8");
  if (secret.length < SECRET_CHARS)
    throw new Error(
      `${path} holds no whole secret. Restore it from a backup, or delete it if no Custom ` +
        "profile was stored yet.",
    );
  return secret;
}

/** Whole or not at all, whenever the process ends; one that is there meanwhile stays. */
function createSecret(path: string): void {
  const made = `${path}.${process.pid}`;
  const file = openSync(made, "w", FILE_MODE);
  try {
    writeSync(file, randomBytes(KEY_BYTES).toString("base64url"));
    fsyncSync(file);
    linkSync(made, path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    closeSync(file);
    unlinkSync(made);
  }
}

/** 32 bytes in base64url. */
const SECRET_CHARS = 43;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

function keyOf(secret: string): SealingKey {
  return {
    id: derived(secret, "svc sealing key id", KEY_ID_BYTES).toString("hex"),
    key: derived(secret, "svc sealing key", KEY_BYTES),
  };
}

function derived(secret: string, purpose: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", purpose, bytes));
}

function opened(key: Buffer, bytes: Buffer, context: string): string | null {
  if (bytes.length < IV_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const beginning = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
    return Buffer.concat([beginning, decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
}
