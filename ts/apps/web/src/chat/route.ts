// The view that the address names, in the fragment, so that the server serves one page.
import { useSyncExternalStore } from "react";

export type Route = { readonly view: "new" | "inbox" } | { readonly view: "chat"; readonly id: string };

const CHAT = /^#\/chat\/([A-Za-z0-9_.:-]{1,128})$/;

export function routeOf(hash: string): Route {
  const id = CHAT.exec(hash)?.[1];
  return id !== undefined ? { view: "chat", id } : { view: hash === "#/inbox" ? "inbox" : "new" };
}

export function hrefOf(route: Route): string {
  return route.view === "chat" ? `#/chat/${route.id}` : route.view === "inbox" ? "#/inbox" : "#/";
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
