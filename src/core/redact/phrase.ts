// Removes seed phrases: 12 or more consecutive words that could all be in the BIP-39 list. Uses no
// word list: BIP-39 words have 3 to 8 letters, and ordinary prose rarely has twelve such words in a
// row without a common word that BIP-39 lacks.

const LEAST_WORDS = 12;
const WORD = /^[a-z]{3,8}$/i;
/** What may separate two words of a phrase: spaces, commas, quotes, and list numbers. */
const BETWEEN = /^(?=.{1,12}$)[\s,;|"'`·]*(?:\d{1,2}\s*[.):-]?)?[\s,;|"'`·]*$/s;
/** Common words that are not in BIP-39. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    "the and for with from but was were are not has had his her its our your their them these " +
    "those been than which would could should did does done how who " +
    "why while being here get got gets send sent see seen says said calls called request " +
    "requests errors returned via per let works worked failed " +
    "fails after without through both every some many most provider gateway endpoint chain " +
    "server polygon arbitrum optimism linea zkevm mainnet testnet ethereum binance gnosis " +
    "mantle taiko"
  ).split(" "),
);

/** Replaces the seed phrases in a text by `mark`. */
export function withoutPhrases(text: string, mark: string): string {
  const pieces = text.split(/([A-Za-z]+)/);
  let out = "";
  let copied = 0;
  for (let i = 1; i < pieces.length; ) {
    const end = phraseEnd(pieces, i);
    const words = (end - i) / 2 + 1;
    if (end >= i && words >= LEAST_WORDS) {
      out += `${pieces.slice(copied, i).join("")}${mark}`;
      copied = end + 1;
    }
    i = Math.max(i, end) + 2;
  }
  return out + pieces.slice(copied).join("");
}

/**
 * Index at which the run of possible words that begins at `start` ends; less than `start` = there
 * is none.
 */
function phraseEnd(pieces: readonly string[], start: number): number {
  let end = start - 2;
  for (let i = start; i < pieces.length; i += 2) {
    const word = pieces[i] ?? "";
    if (!WORD.test(word) || STOP_WORDS.has(word.toLowerCase())) break;
    if (i > start && !BETWEEN.test(pieces[i - 1] ?? "")) break;
    end = i;
  }
  return end;
}
