import {
  CopilotChat, CopilotKit, useAgent, useConfigureSuggestions, useDefaultRenderTool, useFrontendTool, useHumanInTheLoop, useInterrupt, type Interrupt,
} from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { StrictMode, useState, type FormEvent, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";
import "./page.css";

// a chat has an address, so that a reload finds it again
if (location.hash === "") {
  history.replaceState(null, "", `#${crypto.randomUUID()}`);
}
const threadId = location.hash.slice(1);
addEventListener("hashchange", () => location.reload());

function App() {
  return (
    <CopilotKit runtimeUrl="/copilotkit" enableInspector={false}>
      <Page />
    </CopilotKit>
  );
}

function Page() {
  // anything typed before CopilotKit knows its agent would be lost
  const { isReady } = useAgent({ updates: [] });
  const [todos, setTodos] = useState<string[]>(() => JSON.parse(localStorage.getItem(threadId) ?? "[]"));

  // runs in this page; the model gets its return value
  useFrontendTool({
    name: "add_todo",
    description: "Add an entry to the list that the user sees.",
    parameters: z.object({ text: z.string() }),
    handler: async ({ text }) => {
      const all = [...JSON.parse(localStorage.getItem(threadId) ?? "[]"), text];
      localStorage.setItem(threadId, JSON.stringify(all));
      setTodos(all);
      return text;
    },
  });

  // a question in the chat; the answer is the tool's result
  useHumanInTheLoop({
    name: "choose_time",
    description: "Let the user choose one of several times.",
    parameters: z.object({ question: z.string(), slots: z.array(z.string()) }),
    render: ({ args, result, respond }) => (
      <Card title={args.question ?? ""}>
        {result !== undefined
          ? <p>You chose {result}.</p>
          : args.slots?.map((slot) => <button key={slot} disabled={!respond} onClick={() => respond?.(slot)}>{slot}</button>)}
      </Card>
    ),
  });

  // what the server asks before it continues: whether a tool is approved, or the question of a running tool
  useInterrupt({
    render: ({ interrupts, resolve }) => (
      <>
        {interrupts.map((one) => {
          const InterruptCard = one.reason === "input_required" ? Question : Approval;
          return <InterruptCard key={one.id} interrupt={one} answer={(payload) => resolve(payload, one.id)} />;
        })}
      </>
    ),
  });

  // also show the calls of server tools
  useDefaultRenderTool();

  useConfigureSuggestions({
    available: "always",
    suggestions: [
      { title: "My list", message: "Put the room on my list" },
      { title: "A time", message: "Find a time to meet" },
      { title: "Invite Ada", message: "Invite Ada" },
      { title: "Invite two", message: "Invite Ada and Bob" },
      { title: "Both", message: "Invite Ada and put the room on my list" },
      { title: "Book a room", message: "Book a room" },
    ],
  });

  return (
    <div className="page">
      <aside>
        <h1>To do</h1>
        <ul>{todos.map((todo, index) => <li key={index}>{todo}</li>)}</ul>
        <a href="#" onClick={(event) => (event.preventDefault(), (location.hash = crypto.randomUUID()))}>New chat</a>
      </aside>
      <main>{isReady && <CopilotChat threadId={threadId} />}</main>
    </div>
  );
}

interface CardProps {
  interrupt: Interrupt;
  answer: (payload: Record<string, unknown>) => void;
}

function Approval({ interrupt, answer }: CardProps) {
  // the answers are sent when every approval of the step has one; until then this card stays
  const [said, setSaid] = useState<string>();
  return (
    <Card title={interrupt.message ?? "May I?"}>
      <pre>{JSON.stringify(interrupt.metadata?.["input"], null, 2)}</pre>
      <button disabled={!!said} onClick={() => (setSaid("Approved"), answer({ approved: true }))}>Approve</button>
      <button disabled={!!said} onClick={() => (setSaid("Declined"), answer({ approved: false, reason: "the user declined" }))}>Decline</button>
      {said}
    </Card>
  );
}

/** The fields that a tool asks for with `ask_form`. */
function Question({ interrupt, answer }: CardProps) {
  const [said, setSaid] = useState<string>();
  const form = interrupt.metadata?.["input"] as { schema: { properties: Record<string, Field>; required?: string[] } };
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const values = new FormData(event.currentTarget);
    const content = Object.entries(form.schema.properties).flatMap(([name, { type }]) => {
      const text = String(values.get(name) ?? "");
      return text === "" ? [] : [[name, type === "integer" || type === "number" ? Number(text) : text]];
    });
    setSaid("Sent");
    answer({ action: "accept", content: Object.fromEntries(content) });
  };
  return (
    <Card title={interrupt.message ?? "A question"}>
      <form onSubmit={send}>
        {Object.entries(form.schema.properties).map(([name, field]) => (
          <label key={name}>
            {field.title ?? name}
            {field.enum
              ? <select name={name} disabled={!!said}>{field.enum.map((each) => <option key={each}>{each}</option>)}</select>
              : <input name={name} type={field.type === "string" ? "text" : "number"} min={field.minimum} required={form.schema.required?.includes(name)} disabled={!!said} />}
          </label>
        ))}
        <button disabled={!!said}>Send</button>
        <button type="button" disabled={!!said} onClick={() => (setSaid("Declined"), answer({ action: "decline" }))}>Decline</button>
        {said}
      </form>
    </Card>
  );
}

interface Field {
  type: string;
  title?: string;
  enum?: string[];
  minimum?: number;
}

function Card({ title, children }: { title: string; children: ReactNode }) {
  return <section className="card" aria-label={title}><h2>{title}</h2>{children}</section>;
}

document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
