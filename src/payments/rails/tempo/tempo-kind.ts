// MPP `tempo`/`charge` as documents know it. The rail itself is loaded when it is opened.
import {
  ACCOUNT,
  type Example,
  type ExamplePlace,
  localClient,
  purchase,
  VIEM_ACCOUNT,
} from "../example.ts";
import type { RailKind } from "../rail-kind.ts";
import type { RailTerms } from "../rail-terms.ts";
import type { TempoRailSettings } from "./settings.ts";

/** The Tempo rail. */
export const TEMPO: RailKind<TempoRailSettings> = {
  kind: "tempo",
  method: "tempo",
  intent: "charge",
  offers: ["mpp:tempo/charge"],
  stockProtocol: "mpp",
  localNote: null,
  depositN: () => null,
  examples: (rail, place) => [tempoExample(rail, place)],
  open: async (settings, parts) =>
    (await import("./tempo-rail.ts")).createTempoRail(settings, parts),
};

function tempoExample(rail: RailTerms, place: ExamplePlace): Example {
  const { imports, client } = localClient(rail);
  const option = client === null ? "" : `, getClient: () => ${client}`;
  const code = [
    'import { Mppx, tempo } from "mppx/client";',
    ...imports,
    VIEM_ACCOUNT,
    "",
    ACCOUNT,
    `const mppx = Mppx.create({ polyfill: false, methods: [tempo.charge({ account${option} })] });`,
    purchase("mppx.fetch", place),
  ];
  return { title: "MPP `tempo`", packages: ["mppx", "viem"], code: code.join("\n") };
}
