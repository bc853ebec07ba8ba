// The table of rails. A new rail is a folder beside this file, a row here, and its settings in the
// configuration.
import { EVM } from "./evm/evm-kind.ts";
import type { EvmRailSettings } from "./evm/settings.ts";
import type { Example, ExamplePlace } from "./example.ts";
import type { Rail } from "./rail.ts";
import type { RailKind, RailParts } from "./rail-kind.ts";
import type { RailTerms } from "./rail-terms.ts";
import { SESSION } from "./session/session-kind.ts";
import type { SessionRailSettings } from "./session/settings.ts";
import type { TempoRailSettings } from "./tempo/settings.ts";
import { TEMPO } from "./tempo/tempo-kind.ts";

/** The settings of each kind of rail. */
interface SettingsByKind {
  readonly tempo: TempoRailSettings;
  readonly evm: EvmRailSettings;
  readonly session: SessionRailSettings;
}

type KindName = keyof SettingsByKind;

/** One configured way to pay. */
export type RailSettings = SettingsByKind[KindName];

const RAILS: { readonly [Name in KindName]: RailKind<SettingsByKind[Name]> } = {
  tempo: TEMPO,
  evm: EVM,
  session: SESSION,
};

/** The kinds of rails. */
export const RAIL_KINDS: readonly KindName[] = Object.values(RAILS).map(({ kind }) => kind);

/** Opens a configured rail; null = its payments are no purchases. */
export function openRail(settings: RailSettings, parts: RailParts): Promise<Rail> | null {
  return openAs(settings.kind, settings, parts);
}

function openAs<Name extends KindName>(
  kind: Name,
  settings: SettingsByKind[Name],
  parts: RailParts,
): Promise<Rail> | null {
  const { open }: RailKind<SettingsByKind[Name]> = RAILS[kind];
  return open === null ? null : open(settings, parts);
}

/** What documents say of a configured rail. */
export function railTerms(settings: RailSettings): RailTerms {
  const { kind, chainId, token, recipient, local, rpcUrl } = settings;
  const { method, intent, offers, stockProtocol, localNote } = RAILS[kind];
  return {
    kind,
    method,
    intent,
    offers,
    stockProtocol,
    localNote,
    chainId,
    token: token.address,
    tokenName: token.name,
    tokenVersion: token.version,
    recipient,
    depositN: depositOf(kind, settings),
    local,
    rpcUrl: local ? rpcUrl : null,
  };
}

function depositOf<Name extends KindName>(
  kind: Name,
  settings: SettingsByKind[Name],
): bigint | null {
  const { depositN }: RailKind<SettingsByKind[Name]> = RAILS[kind];
  return depositN(settings);
}

/** Programs that pay by the rails of an instance: those of the first rail of each kind. */
export function examplesOf(rails: readonly RailTerms[], place: ExamplePlace): readonly Example[] {
  return RAIL_KINDS.flatMap((kind) => {
    const rail = rails.find((other) => other.kind === kind);
    return rail === undefined ? [] : RAILS[kind].examples(rail, place);
  });
}
