// A page with `useChat`, as people write it: the test reads the DOM and presses buttons.
import { useChat as useChat7 } from "@ai-sdk/react";
import { useChat as useChat6 } from "@ai-sdk/react6";
import * as ai7 from "ai";
import * as ai6 from "ai6";
import { type ReactNode, useState } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { type Message, type Part, wordsOf } from "../message.ts";
import { Wire } from "../wire.ts";
import { type Chat, type Client, httpOptions, type Opening, Page, type ToolCall } from "./client.ts";
import { whenToSend } from "./when-to-send.ts";

export const react6: Client = {
  name: "useChat of ai 6",
  transport: "http",
  open: (opening) =>
    mount(opening, (wire, callbacks) => {
      const transport = new ai6.DefaultChatTransport(httpOptions(opening, wire));
      const options = { ...callbacks, ...whenToSend(ai6, opening), transport };
      // the hook takes messages of its own version; the tests use what all versions have
      return () => useChat6(options as unknown as Parameters<typeof useChat6>[0]) as unknown as Chat;
    }),
};

export const react7: Client = {
  name: "useChat of ai 7",
  transport: "http",
  open: (opening) =>
    mount(opening, (wire, callbacks) => {
      const transport = new ai7.DefaultChatTransport(httpOptions(opening, wire));
      const options = { ...callbacks, ...whenToSend(ai7, opening), transport };
      // as above
      return () => useChat7(options as unknown as Parameters<typeof useChat7>[0]) as unknown as Chat;
    }),
};

export interface Callbacks {
  readonly id: string;
  readonly messages: Message[];
  readonly resume: boolean;
  readonly onToolCall: (options: { toolCall: ToolCall }) => void;
}

export function mount(opening: Opening, hookOn: (wire: Wire, callbacks: Callbacks) => () => Chat): Page {
  const wire = new Wire();
  const place = document.body.appendChild(document.createElement("main"));
  const root = createRoot(place);
  let current: Chat | undefined;
  const onToolCall: Callbacks["onToolCall"] = ({ toolCall }) => {
    page.toolCalls.push(toolCall);
    opening.onToolCall?.(toolCall, page);
  };
  const { chatId: id, messages = [], resume = false } = opening;
  const useHook = hookOn(wire, { id, messages: [...messages], resume, onToolCall });
  flushSync(() => root.render(<ChatPage useHook={useHook} onRender={(chat) => (current = chat)} />));
  const page = new Page(opening.chatId, wire, {
    chat: () => {
      if (current === undefined) {
        throw new Error("the page was never rendered");
      }
      return current;
    },
    see: () => [...place.querySelectorAll("p")].map((line) => line.textContent ?? ""),
    say: (text) => {
      fill(place, "message", text);
      press(place, "send");
    },
    decide: (id, approved, reason) => {
      fill(place, `${id} reason`, reason ?? "");
      press(place, `${id} ${approved ? "yes" : "no"}`);
    },
    close: () => {
      root.unmount();
      place.remove();
    },
  });
  return page;
}

function ChatPage({ useHook, onRender }: { useHook: () => Chat; onRender: (chat: Chat) => void }): ReactNode {
  const chat = useHook();
  const [text, setText] = useState("");
  onRender(chat);
  const send = (): void => {
    void chat.sendMessage({ text });
    setText("");
  };
  return (
    <>
      {chat.messages.map((message) => (
        <article key={message.id}>
          {message.parts.map((part, index) => (
            // a part has no id of its own, and parts are never reordered
            <PartLine key={index} role={message.role} part={part} chat={chat} />
          ))}
        </article>
      ))}
      <input aria-label="message" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="button" aria-label="send" onClick={send} />
    </>
  );
}

function PartLine({ role, part, chat }: { role: string; part: Part; chat: Chat }): ReactNode {
  const words = wordsOf(part);
  if (words === undefined) {
    return null;
  }
  const asks = part.state === "approval-requested" && part.approval !== undefined;
  return (
    <>
      <p>{`${role}: ${words}`}</p>
      {asks && part.approval !== undefined && <ApprovalCard id={part.approval.id} chat={chat} />}
    </>
  );
}

function ApprovalCard({ id, chat }: { id: string; chat: Chat }): ReactNode {
  const [reason, setReason] = useState("");
  const answer = (approved: boolean): void =>
    void chat.addToolApprovalResponse({ id, approved, ...(reason === "" ? {} : { reason }) });
  return (
    <form>
      <input aria-label={`${id} reason`} value={reason} onChange={(event) => setReason(event.target.value)} />
      <button type="button" aria-label={`${id} yes`} onClick={() => answer(true)} />
      <button type="button" aria-label={`${id} no`} onClick={() => answer(false)} />
    </form>
  );
}

function press(place: HTMLElement, label: string): void {
  const button = found<HTMLButtonElement>(place, label);
  flushSync(() => button.click());
}

function fill(place: HTMLElement, label: string, text: string): void {
  const input = found<HTMLInputElement>(place, label);
  // React listens to the native setter: assigning to the element alone would not be noticed
  const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set;
  flushSync(() => {
    setter?.call(input, text);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

function found<T extends Element>(place: HTMLElement, label: string): T {
  const element = place.querySelector<T>(`[aria-label="${label}"]`);
  if (element === null) {
    throw new Error(`the page has nothing called "${label}"`);
  }
  return element;
}
