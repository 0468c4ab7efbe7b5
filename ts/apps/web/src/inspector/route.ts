// The view that the Inspector's address names, in the fragment, so that the server serves one page.
import { useSyncExternalStore } from "react";

export const TABS = ["runs", "inbox", "clients", "tools", "events"] as const;
export type Tab = (typeof TABS)[number];

/** `callId` without `runId`, under the tab Runs, is a call that belongs to no run. */
export interface Route {
  readonly tab: Tab;
  readonly runId?: string;
  readonly callId?: string;
}

const ID = /^[A-Za-z0-9_.:-]{1,128}$/;

export function routeOf(hash: string): Route {
  const [first = "", second = "", third = ""] = hash.replace(/^#\/?/, "").split("/");
  if (first === "calls" && ID.test(second)) {
    return { tab: "runs", callId: second };
  }
  const tab = TABS.find((each) => each === first) ?? "runs";
  if (tab !== "runs" || !ID.test(second)) {
    return { tab };
  }
  return ID.test(third) ? { tab, runId: second, callId: third } : { tab, runId: second };
}

export function hrefOf({ tab, runId, callId }: Route): string {
  if (runId === undefined) {
    return callId === undefined ? `#/${tab}` : `#/calls/${callId}`;
  }
  return `#/runs/${runId}${callId === undefined ? "" : `/${callId}`}`;
}

export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, () => location.hash));
}

export function go(route: Route): void {
  location.hash = hrefOf(route);
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}
