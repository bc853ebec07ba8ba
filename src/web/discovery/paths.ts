// Where the documents are, for those who load none of them.

/** Paths of the documents. */
export const DOCUMENT_PATHS = {
  openapi: "/openapi.json",
  agent: "/agent.json",
  llms: "/llms.txt",
  skill: "/SKILL.md",
  docs: "/docs",
  errors: "/docs/errors",
  api: "/docs/api",
} as const;
