// The discovery documents by path. Each is rendered once per set of facts, and the base URL is
// inserted per caller. The cache is bounded, because base URLs come from a request header.

import { createHash } from "node:crypto";
import { errorsText } from "./errors.ts";
import { type DocumentFacts, type Site, servedOperations, siteOf } from "./facts.ts";
import { openApiDocument } from "./openapi.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { readingPage } from "./reading-page.ts";
import { apiReference } from "./reference.ts";
import { agentDocument, indexText, llmsText, skillText } from "./texts.ts";

/** A rendered document. */
export interface SentDocument {
  readonly contentType: string;
  readonly body: Buffer;
  /** Strong ETag with its quotes. */
  readonly etag: string;
  /** The same document as HTML; null = it has no HTML version. */
  readonly page: (() => Promise<SentDocument>) | null;
}

interface Form {
  readonly contentType: string;
  /** Browsers get it as an HTML page. */
  readonly rendersFor?: "browsers";
  readonly render: (facts: DocumentFacts, site: Site) => string;
}

const JSON_TYPE = "application/json";
const MARKDOWN = "text/markdown; charset=utf-8";

const FORMS: ReadonlyMap<string, Form> = new Map([
  [
    DOCUMENT_PATHS.openapi,
    {
      contentType: JSON_TYPE,
      render: (facts, site) => JSON.stringify(openApiDocument(facts, site)),
    },
  ],
  [
    DOCUMENT_PATHS.agent,
    { contentType: JSON_TYPE, render: (facts, site) => JSON.stringify(agentDocument(facts, site)) },
  ],
  [DOCUMENT_PATHS.llms, { contentType: "text/plain; charset=utf-8", render: llmsText }],
  [DOCUMENT_PATHS.skill, { contentType: MARKDOWN, render: skillText }],
  [DOCUMENT_PATHS.docs, { contentType: MARKDOWN, render: indexText, rendersFor: "browsers" }],
  [DOCUMENT_PATHS.errors, { contentType: MARKDOWN, render: errorsText, rendersFor: "browsers" }],
  [
    DOCUMENT_PATHS.api,
    {
      contentType: MARKDOWN,
      render: (facts, { baseUrl }) => apiReference(servedOperations(facts), baseUrl),
      rendersFor: "browsers",
    },
  ],
] satisfies readonly (readonly [string, Form])[]);

/** Placeholder for the base URL in rendered documents. */
const NOWHERE = siteOf("https://base-url.invalid");
const ADDRESSES = /(?:https|wss):\/\/base-url\.invalid/g;
const MAX_KEPT = 64;
const ETAG_CHARS = 22;

/** The discovery documents of an instance. */
export class Documents {
  readonly #facts: () => DocumentFacts;
  #known: DocumentFacts | null = null;
  readonly #templates = new Map<string, Template>();
  readonly #kept = new Map<string, SentDocument>();

  /**
   * `facts` is called for each request; a different record
   * invalidates all rendered documents.
   */
  constructor(facts: () => DocumentFacts) {
    this.#facts = facts;
  }

  /** The document of a path at a base URL without a trailing slash; undefined = none. */
  get(path: string, baseUrl: string): SentDocument | undefined {
    const form = FORMS.get(path);
    if (form === undefined) return undefined;
    const now = this.#facts();
    if (now !== this.#known) {
      this.#templates.clear();
      this.#kept.clear();
      this.#known = now;
    }
    const key = `${path} ${baseUrl}`;
    const found = this.#kept.get(key);
    if (found !== undefined) return found;
    const made = documentOf(form, this.#templateOf(path, form, now), siteOf(baseUrl));
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(key, made);
    return made;
  }

  #templateOf(path: string, form: Form, now: DocumentFacts): Template {
    const template = this.#templates.get(path) ?? cut(form.render(now, NOWHERE));
    this.#templates.set(path, template);
    return template;
  }
}

/** A rendered document, split at the places of base URLs. */
interface Template {
  /** The text between base URLs: the URL of kind `addresses[n]` follows `pieces[n]`. */
  readonly pieces: readonly Buffer[];
  readonly addresses: readonly (keyof Site)[];
  readonly hash: string;
}

function cut(text: string): Template {
  const addresses = Array.from(text.matchAll(ADDRESSES), ([address]): keyof Site =>
    address === NOWHERE.baseUrl ? "baseUrl" : "socketUrl",
  );
  return {
    pieces: text.split(ADDRESSES).map((piece) => Buffer.from(piece)),
    addresses,
    hash: hashOf(text),
  };
}

function documentOf(
  { contentType, rendersFor }: Form,
  { pieces, addresses, hash }: Template,
  site: Site,
): SentDocument {
  const written = (url: string): Buffer =>
    Buffer.from(contentType === JSON_TYPE ? JSON.stringify(url).slice(1, -1) : url);
  const at = { baseUrl: written(site.baseUrl), socketUrl: written(site.socketUrl) };
  const parts = pieces.flatMap((piece, i) => {
    const address = addresses[i];
    return address === undefined ? [piece] : [piece, at[address]];
  });
  const body = Buffer.concat(parts);
  const tag = hashOf(hash + site.baseUrl).slice(0, ETAG_CHARS);
  return {
    contentType,
    body,
    etag: `"${tag}"`,
    page: rendersFor === undefined ? null : pageOf(body, tag, site),
  };
}

/** Rendered at the first request. */
function pageOf(markdown: Buffer, tag: string, { baseUrl }: Site): () => Promise<SentDocument> {
  let rendered: Promise<SentDocument> | null = null;
  const render = async (): Promise<SentDocument> => {
    const body = await readingPage(markdown.toString(), baseUrl + DOCUMENT_PATHS.docs);
    return { contentType: "text/html; charset=utf-8", body, etag: `"${tag}-page"`, page: null };
  };
  return () => {
    rendered ??= render();
    return rendered;
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
