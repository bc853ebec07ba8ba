// `/docs/api`: the reference of all operations as Markdown, rendered from the contract. Adds no
// facts of its own.
import { LEGACY_FORMS } from "../../core/faults/legacy-form.ts";
import type { JsonSchema } from "../../core/json-schema.ts";
import type { NamedOperation } from "../contract/contract.ts";
import { rpcError } from "../contract/instance.ts";
import { type Auth, isIdempotent } from "../contract/operation.ts";
import { rpcAnswers, rpcBody } from "../contract/rpc-schemas.ts";
import { errorUrl } from "./errors.ts";
import { KEYED_FORMS, PLAIN_FORMS, SESSION_FORM } from "./facts.ts";
import { fieldRows, Schemas, typeText } from "./schema-text.ts";
import { bullets, cell, markdownOf, table } from "./sections.ts";

/** The reference of these operations. */
export function apiReference(operations: readonly NamedOperation[], baseUrl: string): string {
  const schemas = new Schemas();
  const keyed = operations.some((operation) => operation.servedBy === "api");
  const sections = operations.map((operation) => operationText(operation, schemas, baseUrl));
  for (const shape of [rpcBody, rpcAnswers, rpcError]) schemas.of(shape);
  const rows = operations.map(({ id, endpoint, summary }) => [
    `[${id}](#${id.toLowerCase()})`,
    `\`${endpoint}\``,
    cell(summary),
  ]);
  const introduction =
    `Base URL: ${baseUrl}. Bodies are JSON. Unknown query parameters are ignored; fields may be ` +
    "added to answers. Every answer carries `x-svc-request-id`.";
  const shapes = Object.entries(schemas.components).flatMap(([name, node]) =>
    shapeText(name, node),
  );
  return markdownOf(
    ["# API reference", introduction],
    [
      { title: "JSON-RPC", text: [...formsText(keyed), ...oldFormsText(keyed)] },
      {
        title: "Operations",
        text: [table(["Operation", "Request", "Does"], rows), ...sections.flat()],
      },
      { title: "Shapes", text: shapes },
    ],
  );
}

function formsText(keyed: boolean): readonly string[] {
  const forms = [...(keyed ? KEYED_FORMS : []), ...PLAIN_FORMS].map((form) => `\`POST ${form}\``);
  const paid = `\`POST ${SESSION_FORM}\`: paid for call by call, where the instance has a rail for that`;
  return [
    bullets(keyed ? [...forms, paid] : forms),
    "Body: [JsonRpcBody](#jsonrpcbody). Answer: [JsonRpcAnswer](#jsonrpcanswer), or 204 to " +
      "notifications. Refusals: [RpcError](#rpcerror). The same paths under `/ws` are WebSockets.",
  ];
}

const OLDER =
  "They are served as before. Their answers carry `Deprecation`, `Sunset` " +
  "(a form that is used is served until then at least), `Link`";
const OLDER_KEYED =
  ", the headers of version 2 (`x-svc-profile`, `x-svc-downgraded`, `x-svc-balance-warning`, " +
  "`x-svc-rate-limit-limit`, `x-svc-rate-limit-remaining`, `x-svc-rate-limit-reset`)";
const OLDER_ERRORS = " and, where the service refuses, `error.data.error_type`.";

const OLDER_OFF = " A form that is switched off answers `gone`.";

function oldFormsText(keyed: boolean): readonly string[] {
  const rows = Object.entries(LEGACY_FORMS)
    .filter(([name]) => keyed || (name !== "key-query" && name !== "version-header"))
    .map(([name, { was, instead }]) => [name, cell(was), cell(instead)]);
  return [
    "### Older forms",
    `${OLDER}${keyed ? OLDER_KEYED : ""}${OLDER_ERRORS}${keyed ? OLDER_OFF : ""}`,
    table(["Form", "Was", "Use"], rows),
  ];
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

function operationText(
  operation: NamedOperation,
  schemas: Schemas,
  baseUrl: string,
): readonly string[] {
  const { id, endpoint, summary, description, auth, pays, body } = operation;
  const faults = [...new Set(operation.faults)].map(
    (code) => `[${code}](${errorUrl(baseUrl, code)})`,
  );
  const ways = auth.map((way) => CREDENTIALS[way]).join(", or ");
  const facts = [
    `Credential: ${ways}${pays === undefined ? "" : PAYMENT}`,
    `Idempotent: ${isIdempotent(operation) ? "yes" : "no"}`,
    ...(faults.length === 0 ? [] : [`Refusals: ${faults.join(", ")}`]),
  ];
  return [
    `### ${id}`,
    `\`${endpoint}\``,
    `${summary}. ${description}`,
    bullets(facts),
    ...fieldTable("Path", operation.params, schemas),
    ...fieldTable("Query", operation.query, schemas),
    ...(body === undefined ? [] : [`Body: ${typeText(schemas.of(body))}`]),
    ...Object.entries(operation.answers).map(([status, { schema, description }]) => {
      const shown = schema === null ? "no body" : typeText(schemas.of(schema));
      return `${status}: ${shown}. ${description}`;
    }),
  ];
}

const HEADS = ["Type", "Present", "Meaning"];

function fieldTable(
  title: string,
  shape: NamedOperation["params"],
  schemas: Schemas,
): readonly string[] {
  return shape === undefined ? [] : [table([title, ...HEADS], fieldRows(schemas.of(shape)))];
}

function shapeText(name: string, node: JsonSchema): readonly string[] {
  const rows = fieldRows(node);
  return [
    `### ${name}`,
    ...(node.description === undefined ? [] : [node.description]),
    rows.length === 0 ? cell(typeText(node)) : table(["Field", ...HEADS], rows),
  ];
}
