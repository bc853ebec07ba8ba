// A call as programs to copy: curl, viem, ethers, web3.py. Every text from outside is quoted for
// its language. Pure.

/** The call. */
export interface SnippetCall {
  readonly url: string;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** The languages that there are. */
export const LANGUAGES = ["curl", "viem", "ethers", "web3.py"] as const;
export type Language = (typeof LANGUAGES)[number];

/** The call in a language. */
export function snippet(language: Language, call: SnippetCall): string {
  return WRITERS[language](call);
}

const WRITERS: Readonly<Record<Language, (call: SnippetCall) => string>> = {
  curl: ({ url, method, params }) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    return `curl ${shell(url)} \\\n  -H 'content-type: application/json' \\\n  -d ${shell(body)}`;
  },
  viem: ({ url, method, params }) =>
    [
      'import { createPublicClient, http } from "viem";',
      "",
      `const client = createPublicClient({ transport: http(${JSON.stringify(url)}) });`,
      `const result = await client.request({ method: ${JSON.stringify(method)}, ` +
        `params: ${JSON.stringify(params)} });`,
      "console.log(result);",
    ].join("\n"),
  ethers: ({ url, method, params }) =>
    [
      'import { JsonRpcProvider } from "ethers";',
      "",
      `const provider = new JsonRpcProvider(${JSON.stringify(url)});`,
      `const result = await provider.send(${JSON.stringify(method)}, ${JSON.stringify(params)});`,
      "console.log(result);",
    ].join("\n"),
  "web3.py": ({ url, method, params }) =>
    [
      "import json",
      "from web3 import Web3",
      "",
      `w3 = Web3(Web3.HTTPProvider(${JSON.stringify(url)}))`,
      `params = json.loads(${JSON.stringify(JSON.stringify(params))})`,
      `print(w3.provider.make_request(${JSON.stringify(method)}, params))`,
    ].join("\n"),
};

/** A text as one word of a shell. */
export function shell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
