// One JSON request and what came of it. Decides nothing about repeating it.
import { parsed } from "./json.ts";
import { SILENCE_MS } from "./wait.ts";

export interface Http {
  /** Where the server is; empty for the page's own. */
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly headers: Readonly<Record<string, string>>;
  /** Another value after each sign-in; empty if the page cannot tell. */
  readonly signIn: () => string;
  readonly silenceMs: number;
}

export interface HttpOptions {
  readonly url?: string;
  /** For pages that sign their requests. */
  readonly fetch?: typeof fetch;
  readonly headers?: Readonly<Record<string, string>>;
  /** Names the sign-in of this moment, not its secret: an approval is not repeated under another one. farhand's own, unless told otherwise. */
  readonly signIn?: () => string;
  /** A connection on which nothing came for so long is taken for lost; 35 s, two keep-alives of the server and a little more. */
  readonly silenceMs?: number;
}

export type Answer =
  | { readonly kind: "answered"; readonly status: number; readonly body: unknown; readonly retryAfterMs: number }
  | { readonly kind: "unreachable" };

export function httpOf({ url = "", fetch = globalThis.fetch, headers = {}, signIn = ownSignIn, silenceMs = SILENCE_MS }: HttpOptions): Http {
  // bound: a browser's fetch does not run as the method of another object
  return { url: url.replace(/\/$/, ""), fetch: (input, init) => fetch(input, init), headers, signIn, silenceMs };
}

/** The cookie that lets a page in cannot be read; beside it stands one that says which sign-in it is of. */
function ownSignIn(): string {
  try {
    return String(document.cookie.match(/farhand_\d+_sign_in=[^;]+/g) ?? "");
  } catch {
    // no page, or one without an origin of its own
    return "";
  }
}

export interface Asking {
  /** Posted as JSON; without it nothing is. */
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** POST with a body, GET without one, unless told otherwise. */
  readonly method?: "DELETE";
  /** Is sent although the page closes. */
  readonly keepalive?: boolean;
}

export function request(http: Http, { body, headers, ...more }: Asking, signal: AbortSignal): RequestInit {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  return { ...(body === undefined ? {} : { method: "POST", body }), ...more, headers: { ...http.headers, ...json, ...headers }, signal };
}

/** How long an answer is waited for: a large request takes its time, on a slow line 16 bytes in a millisecond. */
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

/** How long the server asks to be left alone; 0 if it does not say. */
export function retryAfterOf({ headers }: Response): number {
  return (Number(headers.get("retry-after")) || 0) * 1_000;
}

/** What a refusal says about itself, whichever face it comes from. */
export function reasonOf(body: unknown): string {
  const { error, detail, reason } = (body ?? {}) as { error?: unknown; detail?: unknown; reason?: unknown };
  const message = (error as { message?: unknown } | undefined)?.message;
  const told = [message, detail, reason].find((each) => typeof each === "string");
  return told === undefined ? "The server refused it." : (told as string);
}
