// What all views of the page share: the hands that answer calls, the feed of events, and the function that opens the side panel.
import { type Connection, openable } from "@farhand/client";
import { FarHands } from "@farhand/ai-sdk";
import { createContext, useContext, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { CONNECTION } from "../connection.ts";
import { Feed } from "../feed.ts";
import { HTTP, SIGN_IN } from "../server.ts";
import { storageOf } from "../storage.ts";
import { Drafts } from "./drafts.ts";
import { Stops } from "./stop-requests.ts";

export class Site {
  readonly hands: FarHands;
  readonly stops = new Stops(storageOf("sessionStorage"));
  readonly drafts = new Drafts(storageOf("sessionStorage"));
  /** Set by whoever shows pages beside the chat. */
  openPage: ((url: URL) => string) | undefined;
  /** The server was reached at least once: before that, no connection can be lost. */
  wasLive = false;
  readonly #receipts = new Set<() => void>();

  constructor(readonly feed: Feed = new Feed(HTTP)) {
    // events show that the server is reachable
    feed.listen(() => this.stops.retryNow());
    feed.watch(() => (this.wasLive ||= feed.isLive));
    SIGN_IN.subscribe(() => SIGN_IN.isOut || this.#forgetRefusals());
    const storage = storageOf("sessionStorage");
    this.hands = new FarHands({
      url: BASE,
      fetch: SIGN_IN.fetch,
      handlers: { open_url: (input: { url: string }) => this.#open(input.url) },
      onUnknown: "card",
      ...(storage === undefined ? {} : { storage }),
      onReceipt: () => this.#receipts.forEach((listener) => listener()),
    });
  }

  /** Calls the listener when an answer has its receipt: a run may continue then. */
  onReceipt(listener: () => void): () => void {
    this.#receipts.add(listener);
    return () => void this.#receipts.delete(listener);
  }

  /** Forgets approvals and denials that were refused because nobody was signed in: after the next sign-in the person is asked again. */
  #forgetRefusals(): void {
    for (const [id, delivery] of this.hands.deliveries) {
      if (delivery.state === "refused" && delivery.status === 401 && id.startsWith("apr_")) {
        this.hands.discard(id);
      }
    }
  }

  #open(text: string): { url: string; viewKey: string } {
    const url = openable(text);
    if (url === undefined || this.openPage === undefined) {
      throw new Error(`The page did not open "${text.slice(0, 200)}": only http and https addresses are opened.`);
    }
    return { url: url.href, viewKey: this.openPage(url) };
  }
}

const SiteContext = createContext<Site | undefined>(undefined);

export const SiteProvider = SiteContext.Provider;

export function useSite(): Site {
  const site = useContext(SiteContext);
  if (site === undefined) {
    throw new Error("Render views inside <SiteProvider>.");
  }
  return site;
}

/** Renders again when a delivery or a running call changes. */
export function useHands(): Pick<FarHands, "deliveries" | "running"> {
  const { hands } = useSite();
  return useSyncExternalStore(hands.subscribe, () => snapshotOf(hands));
}

/** Whether the server can be reached, as far as this page knows. */
export function useIsConnected(): boolean {
  // an undelivered answer shows a lost connection before the feed does
  const isStuck = [...useHands().deliveries.values()].some(({ state }) => state === "undelivered");
  return useIsLive() && !isStuck;
}

function useIsLive(): boolean {
  const { feed } = useSite();
  const isUp = useSyncExternalStore(CONNECTION.subscribe, () => CONNECTION.isUp);
  return useSyncExternalStore(feed.watch, () => feed.isLive) && isUp;
}

const CLOSED: Connection = { state: "closed" };
const LOST: Connection = { state: "lost", retryAt: 0 };
const SIGNED_OUT: Connection = { state: "refused", status: 401, reason: "" };

/** The connection as cards see it: that of their chat's stream or, without a stream, that of the feed. */
export function useCardConnection(stream: Connection = CLOSED): Connection {
  const { wasLive } = useSite();
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  const isLive = useIsLive();
  return isOut ? SIGNED_OUT : stream.state === "lost" || isLive || !wasLive ? stream : LOST;
}

const snapshots = new WeakMap<FarHands, { deliveries: FarHands["deliveries"]; running: FarHands["running"] }>();

/** The same object until something changes, as `useSyncExternalStore` requires. */
function snapshotOf(hands: FarHands): Pick<FarHands, "deliveries" | "running"> {
  const last = snapshots.get(hands);
  const isSame = last !== undefined && isEqual(last.deliveries, hands.deliveries) && last.running.size === hands.running.size && [...hands.running].every((id) => last.running.has(id));
  if (isSame) {
    return last;
  }
  const next = { deliveries: new Map(hands.deliveries), running: new Set(hands.running) };
  snapshots.set(hands, next);
  return next;
}

function isEqual(one: FarHands["deliveries"], other: FarHands["deliveries"]): boolean {
  return one.size === other.size && [...one].every(([id, delivery]) => other.get(id) === delivery);
}
