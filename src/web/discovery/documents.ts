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

const FORMS: Readonly<Record<string, Form>> = {
  [DOCUMENT_PATHS.openapi]: {
    contentType: JSON_TYPE,
    render: (facts, site) => JSON.stringify(openApiDocument(facts, site)),
  },
  [DOCUMENT_PATHS.agent]: {
    contentType: JSON_TYPE,
    render: (facts, site) => JSON.stringify(agentDocument(facts, site)),
  },
  [DOCUMENT_PATHS.llms]: { contentType: "text/plain; charset=utf-8", render: llmsText },
  [DOCUMENT_PATHS.skill]: { contentType: MARKDOWN, render: skillText },
  [DOCUMENT_PATHS.docs]: { contentType: MARKDOWN, render: indexText, rendersFor: "browsers" },
  [DOCUMENT_PATHS.errors]: { contentType: MARKDOWN, render: errorsText, rendersFor: "browsers" },
  [DOCUMENT_PATHS.api]: {
    contentType: MARKDOWN,
    render: (facts, { baseUrl }) => apiReference(servedOperations(facts), baseUrl),
    rendersFor: "browsers",
  },
};

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
    const form = Object.hasOwn(FORMS, path) ? FORMS[path] : undefined;
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

  #templateOf(path: string, { render }: Form, now: DocumentFacts): Template {
    const known = this.#templates.get(path);
    if (known !== undefined) return known;
    const text = render(now, NOWHERE);
    const template = { text, hash: hashOf(text) };
    this.#templates.set(path, template);
    return template;
  }
}

/** A document as it is rendered once, for no address. */
interface Template {
  readonly text: string;
  readonly hash: string;
}

function documentOf(
  { contentType, rendersFor }: Form,
  { text, hash }: Template,
  site: Site,
): SentDocument {
  const written = (url: string): string =>
    contentType === JSON_TYPE ? JSON.stringify(url).slice(1, -1) : url;
  const at = {
    [NOWHERE.baseUrl]: written(site.baseUrl),
    [NOWHERE.socketUrl]: written(site.socketUrl),
  };
  const body = Buffer.from(text.replace(ADDRESSES, (address) => at[address] ?? address));
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
