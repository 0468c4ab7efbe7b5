// Where the server's paths begin: "" at the root of its host, "/agent" when a host app mounted it there.
// Both pages stand directly below that path, so the page's own address says it.
export function baseOf(address: string): string {
  return new URL(".", address).pathname.replace(/\/$/, "");
}

export const BASE: string = baseOf(document.baseURI);
