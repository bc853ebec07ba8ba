// The seeds of tests that draw numbers by chance. A test prints its seed, in its name or in what it
// reports, and `SVC_SEED` repeats it: set, it replaces every other seed of the run.

/** The name of the environment variable. */
const VARIABLE = "SVC_SEED";
const SEEDS = 2 ** 31;

/** A new seed by chance, or the chosen one. */
export function chanceSeed(): number {
  return chosenSeed() ?? Math.floor(Math.random() * SEEDS);
}

/** So many seeds by chance, one after the other; or the chosen one alone. */
export function chanceSeeds(count: number): readonly number[] {
  const chosen = chosenSeed();
  if (chosen !== null) return [chosen];
  const first = chanceSeed();
  return Array.from({ length: count }, (_, at) => (first + at) % SEEDS);
}

/** The seeds named and one by chance, or the chosen one alone. */
export function seedsBesides(...named: readonly number[]): readonly number[] {
  const chosen = chosenSeed();
  return chosen === null ? [...named, chanceSeed()] : [chosen];
}

/** The seeds named, or the chosen one alone. */
export function namedSeeds(...named: readonly number[]): readonly number[] {
  const chosen = chosenSeed();
  return chosen === null ? named : [chosen];
}

/** The seed named, or the chosen one. */
export function namedSeed(seed: number): number {
  return chosenSeed() ?? seed;
}

/** The seeds from 1 on, or the chosen one alone. */
export function seedsTo(last: number): readonly number[] {
  return namedSeeds(...Array.from({ length: last }, (_, at) => at + 1));
}

/** Null = none was chosen. Throws where the variable holds no whole number. */
export function chosenSeed(): number | null {
  const text = process.env[VARIABLE];
  if (text === undefined || text === "") return null;
  const seed = Number(text);
  if (!Number.isSafeInteger(seed)) throw new Error(`${VARIABLE} is no whole number: ${text}`);
  return seed;
}
