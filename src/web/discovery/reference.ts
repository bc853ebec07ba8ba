// `/docs/api`: the reference of all operations as Markdown, rendered from the contract. Adds no
// facts of its own.
import { LEGACY_FORMS } from "../../core/faults/legacy-form.ts";
import type { JsonSchema } from "../../core/json-schema.ts";
import type { NamedOperation } from "../contract/contract.ts";
import { rpcError } from "../contract/instance.ts";
import { type Auth, isIdempotent } from "../contract/operation.ts";
import { errorUrl } from "./errors.ts";
import { KEYED_FORMS, PLAIN_FORMS, SESSION_FORM } from "./facts.ts";
import { rpcAnswers, rpcBody } from "./rpc-schemas.ts";
import { cell, fieldRows, Schemas, table, typeText } from "./schema-text.ts";

/** The reference of these operations. */
export function apiReference(operations: readonly NamedOperation[], baseUrl: string): string {
  const schemas = new Schemas();
  const keyed = operations.some((operation) => operation.servedBy === "api");
  const sections = operations.map((operation) => operationText(operation, schemas, baseUrl));
  const rpc = rpcText(schemas, keyed);
  return [
    `# API reference\n\nBase URL: ${baseUrl}. Bodies are JSON. Unknown query parameters are ` +
      `ignored; fields may be added to answers. Every answer carries \`x-svc-request-id\`.\n`,
    rpc,
    "## Operations\n",
    table(
      ["Operation", "Request", "Does"],
      operations.map((operation) => [
        `[${operation.id}](#${operation.id.toLowerCase()})`,
        `\`${operation.endpoint}\``,
        cell(operation.summary),
      ]),
    ),
    ...sections,
    "## Shapes\n",
    ...Object.entries(schemas.components).map(([name, node]) => shapeText(name, node)),
  ].join("\n");
}

function rpcText(schemas: Schemas, keyed: boolean): string {
  for (const shape of [rpcBody, rpcAnswers, rpcError]) schemas.of(shape);
  const forms = [...(keyed ? KEYED_FORMS : []), ...PLAIN_FORMS].map((form) => `- \`POST ${form}\``);
  if (keyed)
    forms.push(
      `- \`POST ${SESSION_FORM}\`: paid for call by call, where the instance has a rail for that`,
    );
  return (
    `## JSON-RPC\n\n${forms.join("\n")}\n\nBody: [JsonRpcBody](#jsonrpcbody). Answer: ` +
    "[JsonRpcAnswer](#jsonrpcanswer), or 204 to notifications. Refusals: [RpcError](#rpcerror). " +
    `The same paths under \`/ws\` are WebSockets.\n\n${oldFormsText(keyed)}`
  );
}

const OLDER =
  "### Older forms\n\nThey are served as before. Their answers carry `Deprecation`, `Sunset` " +
  "(a form that is used is served until then at least), `Link`";
const OLDER_KEYED =
  ", the headers of version 2 (`x-svc-profile`, `x-svc-downgraded`, `x-svc-balance-warning`, " +
  "`x-svc-rate-limit-limit`, `x-svc-rate-limit-remaining`, `x-svc-rate-limit-reset`)";
const OLDER_ERRORS = " and, where the service refuses, `error.data.error_type`.";

const OLDER_OFF = " A form that is switched off answers `gone`.";

function oldFormsText(keyed: boolean): string {
  const rows = Object.entries(LEGACY_FORMS).filter(
    ([name]) => keyed || (name !== "key-query" && name !== "version-header"),
  );
  return `${OLDER}${keyed ? OLDER_KEYED : ""}${OLDER_ERRORS}${keyed ? OLDER_OFF : ""}\n\n${table(
    ["Form", "Was", "Use"],
    rows.map(([name, { was, instead }]) => [name, cell(was), cell(instead)]),
  )}`;
}

const CREDENTIALS: Readonly<Record<Auth, string>> = {
  none: "none",
  management_token: "management token (`Authorization: Bearer`)",
  rpc_key: "RPC key (`Authorization: Bearer` or `X-Svc-Api-Key`)",
  key_in_path: "the key in the path",
  connection_token: "the connection's token (`Authorization: Bearer`)",
  operator: "operator token (`Authorization: Bearer`)",
};

const PAYMENT =
  "; a payment (`Authorization: Payment`, `Payment-Authorization` or `PAYMENT-SIGNATURE`) pays";

function operationText(operation: NamedOperation, schemas: Schemas, baseUrl: string): string {
  const faults = [...new Set(operation.faults)].map(
    (code) => `[${code}](${errorUrl(baseUrl, code)})`,
  );
  return [
    `### ${operation.id}\n`,
    `\`${operation.endpoint}\`\n`,
    `${operation.summary}. ${operation.description}\n`,
    "- Credential: " +
      `${operation.auth.map((way) => CREDENTIALS[way]).join(", or ")}${operation.pays === undefined ? "" : PAYMENT}`,
    `- Idempotent: ${isIdempotent(operation) ? "yes" : "no"}`,
    ...(faults.length === 0 ? [] : [`- Refusals: ${faults.join(", ")}`]),
    "",
    ...parametersText("Path", operation.params, schemas),
    ...parametersText("Query", operation.query, schemas),
    ...(operation.body === undefined ? [] : [`Body: ${typeText(schemas.of(operation.body))}\n`]),
    ...Object.entries(operation.answers).map(([status, answer]) => {
      const body = answer.schema === null ? "no body" : typeText(schemas.of(answer.schema));
      return `${status}: ${body}. ${answer.description}\n`;
    }),
  ].join("\n");
}

function parametersText(
  title: string,
  shape: NamedOperation["params"],
  schemas: Schemas,
): readonly string[] {
  return shape === undefined
    ? []
    : [table([title, "Type", "Present", "Meaning"], fieldRows(schemas.of(shape)))];
}

function shapeText(name: string, node: JsonSchema): string {
  const rows = fieldRows(node);
  const body =
    rows.length === 0
      ? `${cell(typeText(node))}\n`
      : table(["Field", "Type", "Present", "Meaning"], rows);
  return `### ${name}\n\n${node.description === undefined ? "" : `${node.description}\n\n`}${body}`;
}
