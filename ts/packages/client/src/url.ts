/** The address if a page may open it: absolute, `http:` or `https:`, without credentials. */
export function openable(text: string): URL | undefined {
  if (!URL.canParse(text)) {
    return undefined;
  }
  const url = new URL(text);
  return url.username + url.password === "" && /^https?:$/.test(url.protocol) ? url : undefined;
}
