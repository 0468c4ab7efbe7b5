// One JSON request and what came of it. Decides nothing about repeating it.

export interface Http {
  /** Where the server is; empty for the page's own. */
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly headers: Readonly<Record<string, string>>;
}

export interface HttpOptions {
  readonly url?: string;
  /** For pages that sign their requests. */
  readonly fetch?: typeof fetch;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Answer =
  | { readonly kind: "answered"; readonly status: number; readonly body: unknown; readonly retryAfterMs?: number }
  | { readonly kind: "unreachable" };

export function httpOf({ url = "", fetch = globalThis.fetch, headers = {} }: HttpOptions): Http {
  // bound: a browser's fetch does not run as the method of another object
  return { url: url.replace(/\/$/, ""), fetch: (input, init) => fetch(input, init), headers };
}

export async function ask(http: Http, path: string, body?: string): Promise<Answer> {
  try {
    const response = await http.fetch(http.url + path, {
      ...(body === undefined ? {} : { method: "POST", body }),
      headers: { ...http.headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    });
    const text = await response.text();
    const wait = Number(response.headers.get("retry-after") ?? Number.NaN);
    const retry = Number.isFinite(wait) ? { retryAfterMs: wait * 1_000 } : {};
    return { kind: "answered", status: response.status, body: parsed(text), ...retry };
  } catch {
    return { kind: "unreachable" };
  }
}

/** What a refusal says about itself, whichever face it comes from. */
export function reasonOf(body: unknown): string {
  const { error, detail, reason } = (body ?? {}) as { error?: unknown; detail?: unknown; reason?: unknown };
  const message = (error as { message?: unknown } | undefined)?.message;
  const told = [message, detail, reason].find((each) => typeof each === "string");
  return told === undefined ? "The server refused it." : (told as string);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
