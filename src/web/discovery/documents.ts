// The discovery documents by path. Each is rendered once per set of facts, and the base URL is
// inserted per caller: nothing is kept by base URL, which comes from a request header.

import { createHash } from "node:crypto";
import { escaped } from "../http/html.ts";
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
const HTML = "text/html; charset=utf-8";
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
const ETAG_CHARS = 22;

/** The discovery documents of an instance. */
export class Documents {
  readonly #facts: () => DocumentFacts;
  #known: DocumentFacts | null = null;
  readonly #templates = new Map<string, Template>();

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
    if (now !== this.#known) this.#templates.clear();
    this.#known = now;
    const template = this.#templates.get(path) ?? templateOf(form, now);
    this.#templates.set(path, template);
    return documentAt(template, siteOf(baseUrl));
  }
}

/** A document as it is rendered once, for no address. */
interface Template extends Pick<Form, "contentType"> {
  readonly text: string;
  readonly hash: string;
  /** The same as HTML, rendered at the first request; null = it has no HTML version. */
  readonly page: (() => Promise<Template>) | null;
}

function templateOf({ contentType, render, rendersFor }: Form, facts: DocumentFacts): Template {
  const text = render(facts, NOWHERE);
  const hash = hashOf(text);
  let page: Promise<Template> | null = null;
  const rendered = async (): Promise<Template> => {
    const shown = await readingPage(text, NOWHERE.baseUrl + DOCUMENT_PATHS.docs);
    return { contentType: HTML, text: shown, hash: `${hash} as a page`, page: null };
  };
  const show = (): Promise<Template> => {
    page ??= rendered();
    return page;
  };
  return { contentType, text, hash, page: rendersFor === undefined ? null : show };
}

/** How an address is written in a document of a type. */
const WRITTEN: Readonly<Record<string, (url: string) => string>> = {
  [JSON_TYPE]: (url) => JSON.stringify(url).slice(1, -1),
  [HTML]: escaped,
};

function documentAt({ contentType, text, hash, page }: Template, site: Site): SentDocument {
  const { [contentType]: written = String } = WRITTEN;
  const at = {
    [NOWHERE.baseUrl]: written(site.baseUrl),
    [NOWHERE.socketUrl]: written(site.socketUrl),
  };
  return {
    contentType,
    body: Buffer.from(text.replace(ADDRESSES, (address) => at[address] ?? address)),
    etag: `"${hashOf(hash + site.baseUrl).slice(0, ETAG_CHARS)}"`,
    page: page === null ? null : async () => documentAt(await page(), site),
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
