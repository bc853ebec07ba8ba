// A value of an imported file that remembers which of its settings were read, so that nothing of
// the file is dropped in silence: what no converter took becomes a note in the new file. Notes name
// settings and show no text of the file, which may be secret.
import { isRecord } from "../../core/fields.ts";

/** A value of the imported file. */
export class ImportedValue {
  readonly value: unknown;
  /** Where it stands in the file, as `projects[0].upstreams[1]`. */
  readonly path: string;
  readonly #children = new Map<string, ImportedValue>();
  readonly #notes: string[] = [];
  #isReported = false;

  constructor(value: unknown, path = "") {
    this.value = value;
    this.path = path;
  }

  get isRecord(): boolean {
    return isRecord(this.value);
  }

  /** The setting under a name; its own settings count as unread until they are taken as well. */
  child(name: string): ImportedValue {
    const value = isRecord(this.value) ? this.value[name] : undefined;
    return this.#part(name, value, this.path === "" ? name : `${this.path}.${name}`);
  }

  /** The members of a list; none where the value is no list. */
  items(): readonly ImportedValue[] {
    const list: readonly unknown[] = Array.isArray(this.value) ? this.value : [];
    return list.map((value, at) => this.#part(String(at), value, `${this.path}[${at}]`));
  }

  /** The members of a map. */
  entries(): readonly (readonly [name: string, member: ImportedValue])[] {
    const names = isRecord(this.value) ? Object.keys(this.value) : [];
    return names.map((name) => [name, this.child(name)]);
  }

  text(name: string): string | null {
    const { value } = this.child(name);
    if (typeof value === "string") return value.trim() === "" ? null : value.trim();
    return typeof value === "number" ? String(value) : null;
  }

  /** A whole number above zero; anything else is noted. */
  count(name: string): number | null {
    const { value } = this.child(name);
    const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isSafeInteger(number) && number > 0) return number;
    if (value !== undefined && value !== null && value !== 0)
      this.note(`${name}: is no plain number; svc fills variables into texts only`);
    return null;
  }

  flag(name: string): boolean | null {
    const { value } = this.child(name);
    return typeof value === "boolean" ? value : null;
  }

  /** A duration such as `500ms`, `1m30s` or a number of milliseconds, in milliseconds. */
  durationMs(name: string): number | null {
    const { value } = this.child(name);
    if (typeof value === "number") return value > 0 ? Math.round(value) : null;
    if (typeof value !== "string" || value === "") return null;
    const ms = durationOf(value);
    if (ms === null) this.note(`${name}: is no duration that svc understands`);
    return ms === null || ms === 0 ? null : ms;
  }

  texts(name: string): readonly string[] {
    return this.child(name)
      .items()
      .map(({ value }) => value)
      .filter((value) => typeof value === "string");
  }

  has(name: string): boolean {
    return isRecord(this.value) && this.value[name] !== undefined && this.value[name] !== null;
  }

  /** Marks settings as dropped for a reason, where they are given. */
  drop(reason: string, ...names: readonly string[]): void {
    const given = names.filter((name) => this.has(name) && !this.child(name).#isReported);
    for (const name of given) this.child(name).#isReported = true;
    if (given.length > 0) this.note(`${given.join(", ")}: ${reason}`);
  }

  /** Marks the whole value as read. */
  claim(): unknown {
    this.#isReported = true;
    return this.value;
  }

  /** A source for the value with other settings, which stands for this one from now on. */
  replacedBy(value: unknown): ImportedValue {
    this.claim();
    return new ImportedValue(value, this.path);
  }

  note(text: string): void {
    if (!this.#notes.includes(text)) this.#notes.push(text);
  }

  /** Everything of this value that was not carried over and not told before, as lines. */
  notes(): readonly string[] {
    const all = [...this.#notes, ...this.#unread("")];
    this.#notes.length = 0;
    return all;
  }

  #part(key: string, value: unknown, path: string): ImportedValue {
    const known = this.#children.get(key);
    if (known !== undefined) return known;
    const part = new ImportedValue(value, path);
    this.#children.set(key, part);
    return part;
  }

  /** Notes of the parts below, and settings that nobody took, each once. */
  #unread(prefix: string): readonly string[] {
    if (this.#isReported) return [];
    const members: readonly (readonly [string, unknown])[] = isRecord(this.value)
      ? Object.entries(this.value)
      : [];
    const untaken = members
      .filter(([name, value]) => !this.#children.has(name) && value !== null)
      .map(([name]) => `${prefix}${name}`);
    for (const [name] of members) this.child(name);
    const own = untaken.length === 0 ? [] : [`${untaken.join(", ")}: svc has no such setting`];
    const below = [...this.#children].flatMap(([key, part]) => {
      const at = Array.isArray(this.value)
        ? `${prefix.replace(/\.$/, "")}[${key}].`
        : `${prefix}${key}.`;
      const noted = part.#notes.splice(0).map((note) => `${at}${note}`);
      return untaken.includes(`${prefix}${key}`) ? noted : [...noted, ...part.#unread(at)];
    });
    this.#isReported = true;
    return [...own, ...below];
  }
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** A duration as Go writes it, in whole milliseconds; null = it is none. */
function durationOf(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return null;
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g);
  return Math.round(
    parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (UNITS_MS[unit] ?? 0), 0),
  );
}
