// The server's tools: titles, schemas, cards. Requested once for each server, and again for an unknown name. Loaded with the first card.
import type { Http } from "@farhand/client";
import { useEffect, useSyncExternalStore } from "react";
import { guessCard, type ToolFacts } from "./guess.ts";
import { received } from "./received.ts";
import type { CardHost } from "./thread.tsx";
import { type CardView, kindOf } from "./view.ts";

/** The views with what the server says about their tools; `isAsking` while something about one of them is still unknown. */
export function useKnown(views: readonly CardView[], { http }: CardHost): { readonly views: readonly CardView[]; readonly isAsking: boolean } {
  const list = toolListOf(http);
  const { tools, isAsking } = useSyncExternalStore(list.subscribe, list.state, list.state);
  const names = [...new Set(views.filter(({ tool }) => tool === undefined).map(({ call }) => call.tool))].sort().join(" ");
  useEffect(() => names.split(" ").forEach((name) => list.need(name)), [names, list]);
  return { views: views.map((view) => withTool(view, tools.get(view.call.tool))), isAsking: isAsking || !list.wasAsked(names.split(" ")) };
}

/** The view with its tool; if neither names a card of ours, the card is derived from the schemas, also as a fallback for a page that lacks
 * the named one. */
export function withTool(view: CardView, found: ToolFacts | undefined): CardView {
  const tool = view.tool ?? found;
  const isUnknown = view.kind === "unknown";
  if (tool === undefined || (tool === view.tool && !isUnknown)) {
    return view;
  }
  // for a finished call, only the tool says where it ran
  const executor = view.call.phase === "settled" ? tool.executor : view.executor;
  const named = isUnknown ? kindOf(tool.card) : view.kind;
  const kind = named === "unknown" && executor === "frontend" ? guessCard(tool) : named;
  return { ...view, tool, executor, kind };
}

export interface ToolsState {
  readonly tools: ReadonlyMap<string, ToolFacts>;
  readonly isAsking: boolean;
}

const LISTS = new WeakMap<Http, ToolList>();

export function toolListOf(http: Http): ToolList {
  const list = LISTS.get(http) ?? new ToolList(http);
  LISTS.set(http, list);
  return list;
}

/** The delay after a failed request. */
const ASK_AGAIN_MS = 5_000;

class ToolList {
  #state: ToolsState = { tools: new Map(), isAsking: false };
  #isAway = false;
  /** Names that the server was asked about: some are not in its list, or not any more. */
  readonly #asked = new Set<string>();
  readonly #listeners = new Set<() => void>();

  constructor(private readonly http: Http) {}

  readonly state = (): ToolsState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  wasAsked(names: readonly string[]): boolean {
    return names.every((name) => name === "" || this.#asked.has(name));
  }

  need(name: string): void {
    if (name === "" || this.#asked.has(name)) {
      return;
    }
    this.#asked.add(name);
    if (!this.#state.isAsking) {
      void this.#ask();
    }
  }

  async #ask(): Promise<void> {
    // if the server does not respond, cards are shown with what is known
    this.#tell({ ...this.#state, isAsking: !this.#isAway });
    const found = await toolsOf(this.http);
    if (found === undefined && this.#listeners.size > 0) {
      setTimeout(() => void this.#ask(), ASK_AGAIN_MS);
    }
    this.#isAway = found === undefined;
    this.#tell({ tools: found ?? this.#state.tools, isAsking: false });
  }

  #tell(state: ToolsState): void {
    this.#state = state;
    this.#listeners.forEach((listener) => listener());
  }
}

async function toolsOf(http: Http): Promise<ReadonlyMap<string, ToolFacts> | undefined> {
  const { tools } = await received<{ tools: readonly (ToolFacts & { name: string })[] }>(http, "/api/tools");
  return Array.isArray(tools) ? new Map(tools.map((tool) => [tool.name, tool])) : undefined;
}
