// Keys that stand in an imported file: each is moved to an environment variable, whose reference
// takes its place. References to variables that the file has already are kept, in the spelling of
// svc. Prints nothing.

import type { Fields } from "../../core/fields.ts";
import { redact } from "../../core/redact/redact.ts";
import { withoutUrlSecrets } from "../../core/redact/url.ts";
import type { ImportedValue } from "./imported-value.ts";

/** A key that was moved out of the file. */
export interface ImportedKey {
  /** The environment variable that has to hold it. */
  readonly name: string;
  /** Where it stood in the imported file. */
  readonly path: string;
  /** Secret. */
  readonly value: string;
}

/** How a format writes references to environment variables. */
export type References =
  /** `${NAME}` and `$NAME`, anywhere in a text. */
  | "shell"
  /** `${NAME}`, anywhere in a text. */
  | "braces"
  /** A text that begins with `$` is the name of a variable as a whole. */
  | "whole"
  /** There are none. */
  | "none";

/** Takes the place of a key while its URL is searched for more. */
const MARK = "\u0001";
const NAME = "[A-Za-z_][A-Za-z0-9_]*";
const SECRET_HEADER = /auth|key|token|secret|cookie|password|signature|credential/i;

/** Moves the keys of one file. */
export class Secrets {
  readonly keys: ImportedKey[] = [];
  readonly #references: References;
  readonly #names: Set<string>;

  /** `text`: the file as a whole, whose own variables keep their names. */
  constructor(references: References, text: string) {
    this.#references = references;
    const names = text.matchAll(new RegExp(`\\$\\{?(${NAME})`, "g"));
    this.#names = new Set(names.map(([, name = ""]) => name));
  }

  /** A text with the references that it holds as svc writes them; other `${` are escaped. */
  text(value: string): string {
    if (this.#references === "none") return value.replaceAll("${", "$${");
    if (this.#references === "whole") {
      if (/^\$\w+$/.test(value)) return `\${${value.slice(1)}}`;
      return (value.startsWith("\\") ? value.slice(1) : value).replaceAll("${", "$${");
    }
    const pattern =
      this.#references === "shell" ? `\\$\\{${NAME}\\}|\\$${NAME}` : `\\$\\{${NAME}\\}`;
    return value.replace(new RegExp(`${pattern}|\\$\\{`, "g"), (found) => {
      if (found === "${") return "$${";
      return found.startsWith("${") ? found : `\${${found.slice(1)}}`;
    });
  }

  /** A URL without literal keys; `owner` names the variables. */
  url(value: string, owner: string, path: string): string {
    const text = this.text(value);
    const pieces = withoutUrlSecrets(text, MARK).split(MARK);
    const found = new RegExp(`^${pieces.map(RegExp.escape).join("(.+?)")}$`, "s").exec(text);
    const secrets = found === null ? [] : found.slice(1);
    const kept = pieces.slice(1).map((piece, at) => {
      const secret = secrets[at] ?? "";
      return `${isReference(secret) ? secret : this.#reference(secret, `${owner}_KEY`, path)}${piece}`;
    });
    return secrets.length === 0 ? text : [pieces[0], ...kept].join("");
  }

  /** Headers without their keys; null = there are none. */
  headers(source: ImportedValue, owner: string): Fields | null {
    const all = source
      .entries()
      .flatMap(([name, { value, path }]): readonly [string, string][] =>
        typeof value === "string" ? [[name, this.#header([name, value], owner, path)]] : [],
      );
    return all.length === 0 ? null : Object.fromEntries(all);
  }

  /** The value of a header without its key; `Bearer` and its like stay. */
  #header([name, value]: readonly [string, string], owner: string, path: string): string {
    const text = this.text(value);
    if (isReference(text) || /\$\{[A-Za-z_]/.test(text)) return text;
    if (!SECRET_HEADER.test(name) && redact(`${name}: ${value}`) === `${name}: ${value}`)
      return text;
    const [, scheme = "", key = text] = /^(\S+ )(\S+)$/.exec(text) ?? [];
    return `${scheme}${this.#reference(key, `${owner}_${name}`, path)}`;
  }

  /** A text that is a key as a whole. */
  key(value: string, name: string, path: string): string {
    const text = this.text(value);
    return isReference(text) ? text : this.#reference(text, name, path);
  }

  /** The reference to the variable that holds a key; one key has one variable. */
  #reference(value: string, name: string, path: string): string {
    const known = this.keys.find((key) => key.value === value);
    if (known !== undefined) return `\${${known.name}}`;
    const free = this.#free(variableName(name));
    this.keys.push({ name: free, path, value });
    return `\${${free}}`;
  }

  #free(name: string): string {
    let free = name;
    for (let count = 2; this.#names.has(free); count++) free = `${name}_${count}`;
    this.#names.add(free);
    return free;
  }
}

/** Whether a text is references to variables and nothing else; `user:password` may be two. */
export function isReference(text: string): boolean {
  return new RegExp(`^(?:\\$\\{${NAME}\\}:?)+$`).test(text);
}

function variableName(text: string): string {
  const name = text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return /^\d/.test(name) ? `KEY_${name}` : name;
}
