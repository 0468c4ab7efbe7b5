/** 128 random bits. Not `crypto.randomUUID`: a page that was not loaded over https has none. */
export function randomId(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}
