// Sends one JSON request and returns its result. Does not decide whether to repeat it.
import { parsed } from "./json.ts";
import { SILENCE_MS } from "./wait.ts";

export interface Http {
  /** The address of the server; empty for the page's own. */
  readonly url: string;
  readonly fetch: typeof fetch;
  /** Read for each request. */
  readonly headers: Headers;
  /** A value that changes with each sign-in; empty if the page does not know. */
  readonly signIn: () => string;
  readonly silenceMs: number;
}

type Headers = Readonly<Record<string, string>>;

export interface HttpOptions {
  readonly url?: string;
  /** For pages that sign their requests. */
  readonly fetch?: typeof fetch;
  /** A function is called for each request, so that a token can be refreshed while the page is open. */
  readonly headers?: Headers | (() => Headers);
  /** Identifies the current sign-in, without its secret: an approval is not sent again under another one. By default, farhand's own. */
  readonly signIn?: () => string;
  /** A connection without data for this long counts as lost; by default 35 s, two keep-alive intervals of the server and a margin. */
  readonly silenceMs?: number;
}

export type Answer =
  | { readonly kind: "answered"; readonly status: number; readonly body: unknown; readonly retryAfterMs: number }
  | { readonly kind: "unreachable" };

export function httpOf({ url = "", fetch = globalThis.fetch, headers = {}, signIn = ownSignIn, silenceMs = SILENCE_MS }: HttpOptions): Http {
  // bound, because a browser's fetch must not be called as a method of another object
  return {
    url: url.replace(/\/$/, ""),
    fetch: (input, init) => fetch(input, init),
    get headers() {
      return typeof headers === "function" ? headers() : headers;
    },
    signIn,
    silenceMs,
  };
}

/** The cookie that authenticates cannot be read; a second one identifies the sign-in. */
function ownSignIn(): string {
  try {
    return String(document.cookie.match(/farhand_\d+_sign_in=[^;]+/g) ?? "");
  } catch {
    // not in a page, or in one with an opaque origin
    return "";
  }
}

export interface Asking {
  /** Sent as JSON; without it, the request has no body. */
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** By default POST with a body, otherwise GET. */
  readonly method?: "DELETE";
  /** The request is sent even if the page closes. */
  readonly keepalive?: boolean;
}

export function request(http: Http, { body, headers, ...more }: Asking, signal: AbortSignal): RequestInit {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  return { ...(body === undefined ? {} : { method: "POST", body }), ...more, headers: { ...http.headers, ...json, ...headers }, signal };
}

/** How long to wait for a response: large requests take longer, and a slow connection sends 16 bytes per millisecond. */
export function patienceOf({ silenceMs }: Http, body: string | undefined): number {
  return Math.ceil(silenceMs + (body?.length ?? 0) / 16);
}

export async function ask(http: Http, path: string, body?: string, how?: Pick<Asking, "method" | "keepalive">): Promise<Answer> {
  try {
    const signal = AbortSignal.timeout(patienceOf(http, body));
    const response = await http.fetch(http.url + path, request(http, { body, ...how }, signal));
    return { kind: "answered", status: response.status, body: parsed(await response.text()), retryAfterMs: retryAfterOf(response) };
  } catch {
    return { kind: "unreachable" };
  }
}

/** How long the server asks to wait, in milliseconds; 0 if it does not. */
export function retryAfterOf({ headers }: Response): number {
  return (Number(headers.get("retry-after")) || 0) * 1_000;
}

export const REFUSED = "The server refused it.";

/** `code` is explained at `/errors/{code}` of the server. */
export interface Refusal {
  readonly state: "refused";
  readonly status: number;
  readonly reason: string;
  readonly code?: string | undefined;
}

/** A refusal from any face of the server. */
export function refusalOf(status: number, body: unknown): Refusal {
  const { error, detail, reason } = (body ?? {}) as { error?: { message?: string; code?: string }; detail?: string; reason?: string };
  const told = [error?.message, detail, reason].find((each) => typeof each === "string") ?? REFUSED;
  return { state: "refused", status, reason: told, code: error?.code ?? (detail && reason) };
}
