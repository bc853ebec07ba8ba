// The port of a kind of rail: its names in protocols and documents, programs that pay by it, and
// how it is opened. Imports none of its libraries: documents are made of it in every process.
import type { Runtime } from "../../runtime.ts";
import type { Example, ExamplePlace } from "./example.ts";
import type { Rail } from "./rail.ts";
import type { RailBase } from "./rail-settings.ts";
import type { RailNames, RailTerms } from "./rail-terms.ts";

/** One kind of rail. */
export interface RailKind<Settings extends RailBase> extends RailNames {
  readonly kind: Settings["kind"];
  /** Suggested deposit, nano-USD; null = it takes none. */
  readonly depositN: (settings: Settings) => bigint | null;
  /** Programs that pay by it. */
  readonly examples: (rail: RailTerms, place: ExamplePlace) => readonly Example[];
  /** Loads its libraries and opens it; null = its payments are no purchases. */
  readonly open: ((settings: Settings, parts: RailParts) => Promise<Rail>) | null;
}

/** What a rail needs. */
export interface RailParts {
  readonly runtime: Runtime;
  /** The realm of our challenges. */
  readonly realm: string;
}
