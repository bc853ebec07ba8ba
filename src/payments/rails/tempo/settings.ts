// What a Tempo rail is configured with.
import type { RailBase } from "../rail-settings.ts";

/** MPP `tempo`/`charge`: the payer's wallet signs the transaction and pays its fee. */
export interface TempoRailSettings extends RailBase {
  readonly kind: "tempo";
  /**
   * `pull` = the service sends the transaction that the client signed; `push` = the client sends it
   * and shows the hash.
   */
  readonly modes: readonly ("pull" | "push")[];
}
