// A minimal chat page with the cards, and a simulated person who uses it.
import type { ThreadOptions } from "@farhand/client";
import { act, cleanup, fireEvent, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach } from "vitest";
import { until } from "../../../tests/until.ts";
import { pressesAre } from "./trust.ts";
import { CardHostProvider, CardList, type HostOptions, type ThreadHost, ToolCard, useThread } from "../src/index.ts";

pressesAre("a person's");
afterEach(cleanup);

const LOOKS_AT_MOST = 1_000;

export interface Page {
  readonly host: () => ThreadHost;
  readonly text: () => string;
  readonly sees: (text: string | RegExp) => Promise<void>;
  /** The answer has ended. */
  readonly rests: () => Promise<void>;
  readonly say: (text: string) => void;
  readonly button: (name: string | RegExp) => HTMLButtonElement;
  readonly press: (name: string | RegExp) => void;
  /** Presses the button as soon as it exists, so that one that is shown only briefly is not missed. */
  readonly presses: (name: string | RegExp) => Promise<void>;
  readonly field: (label: string | RegExp) => HTMLInputElement;
  readonly type: (label: string | RegExp, text: string) => void;
  readonly all: (selector: string) => Element[];
}

export function openPage(options: ThreadOptions, hostOptions?: HostOptions): Page {
  let host: ThreadHost | undefined;
  const { container } = render(<Chat options={options} hostOptions={hostOptions} onRender={(each) => (host = each)} />);
  const text = (): string => container.textContent ?? "";
  const named = <E extends Element>(selector: string, name: string | RegExp): E => {
    const found = [...container.querySelectorAll<E>(selector)].find((each) => matches(nameOf(each), name));
    if (found === undefined) {
      throw new Error(`the page has no ${selector} called ${String(name)}:\n${container.innerHTML}`);
    }
    return found;
  };
  const current = (): ThreadHost => {
    if (host === undefined) {
      throw new Error("never rendered");
    }
    return host;
  };
  const presses = (name: string | RegExp): boolean => {
    const button = named<HTMLButtonElement>("button", name);
    return !button.disabled && (fireEvent.click(button), true);
  };
  const field: Page["field"] = (label) => named("input, textarea, select", label);
  return {
    host: current,
    text,
    sees: (wanted) => act(() => until(() => matches(text(), wanted, "part"), () => `"${String(wanted)}"; the page is:\n${text()}`)),
    rests: () => act(() => until(() => current().state.run.state === "done", () => `the end; the page is:\n${text()}`)),
    say: (said) => act(() => current().thread.send(said)),
    button: (name) => named("button", name),
    press: (name) => void fireEvent.click(named("button", name)),
    presses: async (name) => {
      // state that is set while `act` waits is rendered when it ends, so it waits in small steps
      for (let look = 0; look < LOOKS_AT_MOST; look += 1) {
        if (presses(name)) {
          return;
        }
        await act(() => new Promise((wake) => setTimeout(wake, 20)));
      }
      throw new Error(`there was never "${String(name)}" to press; the page is:\n${text()}`);
    },
    field,
    type: (label, said) => void fireEvent.change(field(label), { target: { value: said } }),
    all: (selector) => [...container.querySelectorAll(selector)],
  };
}

function nameOf(element: Element): string {
  return element.getAttribute("aria-label") ?? element.closest("label")?.querySelector("span")?.textContent ?? element.textContent?.trim() ?? "";
}

function matches(text: string, wanted: string | RegExp, how: "whole" | "part" = "whole"): boolean {
  return wanted instanceof RegExp ? wanted.test(text) : how === "whole" ? text === wanted : text.includes(wanted);
}

interface ChatProps {
  readonly options: ThreadOptions;
  readonly hostOptions: HostOptions | undefined;
  readonly onRender: (host: ThreadHost) => void;
}

function Chat({ options, hostOptions, onRender }: ChatProps): ReactNode {
  const host = useThread(options, hostOptions);
  onRender(host);
  const parts = host.state.messages.flatMap((message) => message.parts);
  return (
    <main>
      {parts.map((part, index) => part.type !== "call" && <p key={index}>{part.text}</p>)}
      <CardHostProvider host={host}>
        {host.cards.filter(({ call }) => call.phase === "settled").map((view) => <ToolCard key={view.call.id} view={view} />)}
      </CardHostProvider>
      <CardList host={host} />
    </main>
  );
}
