// Patterns of the API's texts, written so that every generator of clients understands them: no
// property escapes, no flags.

/** Text without control characters (U+0000 to U+001F, U+007F to U+009F). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
export const NO_CONTROLS: RegExp = /^[^\u0000-\u001f\u007f-\u009f]*$/;
