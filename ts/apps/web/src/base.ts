// Where the server's paths begin: "" at the root of its host, "/agent" if a host app mounted it there. Both pages are served directly
// below that path, so it follows from the page's own address.
export function baseOf(address: string): string {
  return new URL(".", address).pathname.replace(/\/$/, "");
}

export const BASE: string = baseOf(document.baseURI);
