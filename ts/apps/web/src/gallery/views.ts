// Every card in every state, as data; no server is used.
import type { Call } from "@farhand/client";
import type { CardState, CardView, ToolFacts } from "@farhand/react";

export interface Shelf {
  readonly name: string;
  readonly views: readonly CardView[];
}

const SECOND_MS = 1_000;
let count = 0;

interface Looks {
  readonly tool?: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly state?: CardState;
  readonly facts?: Partial<ToolFacts>;
  readonly executor?: string;
  readonly more?: Partial<CardView>;
}

function left(seconds: number): CardState {
  return { name: "open", deadline: Date.now() + seconds * SECOND_MS };
}

function view(kind: CardView["kind"], { tool = kind, input = {}, state = left(58), facts, executor = "frontend", more }: Looks): CardView {
  count += 1;
  const named = { id: `call_${count}`, tool };
  const call: Call = kind === "approval" ? { ...named, phase: "asking", input, approvalId: `apr_${count}` } : { ...named, phase: "ready", input };
  return { call, kind, state, executor, card: kind, tool: { card: null, executor, ...facts }, ...more };
}

function over(kind: CardView["kind"], tool: string, input: object, end: { readonly output?: unknown; readonly state: CardState } & Partial<CardView>): CardView {
  const { output, state, ...more } = end;
  const { call } = view(kind, { tool });
  return { ...view(kind, { tool, state }), call: { id: call.id, tool, phase: "settled", input, outcome: { kind: "success", output } }, ...more };
}

const DONE: CardState = { name: "done" };
const SCHEMA = (properties: object, required: readonly string[] = Object.keys(properties)): object => ({ type: "object", properties, required });

const TICKET = SCHEMA({
  title: { type: "string", description: "What is broken, in a few words." },
  urgency: { type: "string", enum: ["low", "normal", "high"] },
  copies: { type: "integer", minimum: 1, maximum: 9, default: 1 },
  day: { type: "string", format: "date" },
  tags: { type: "array", items: { type: "string" } },
  notify: { type: "boolean", description: "Write to everybody who asked." },
  address: SCHEMA({ street: { type: "string" }, town: { type: "string" } }),
}, ["title", "urgency", "copies", "notify", "address"]);

const kinds = (): readonly CardView[] => [
  view("confirm", { input: { message: "Delete 12 old drafts?" }, state: left(54) }),
  view("text", { input: { question: "What should the folder be called?" }, state: left(118) }),
  view("select", { input: { question: "Which calendar?", options: ["Work", "Home"] }, state: left(48) }),
  view("select", { input: { question: "How urgent is it?", options: ["Low: any time this month", "Normal: within a week", "High: someone could fall"] }, state: left(48) }),
  view("select", { input: { question: "Which town?", options: ["Ayr", "Bath", "Cork", "Derby", "Ely", "Fife"] }, state: left(48) }),
  view("file", { input: { prompt: "Pick the invoice" }, state: left(291) }),
  view("photo", { input: { subject: "the lamp" }, state: left(160) }),
  view("location", { state: left(57) }),
  view("open_page", { input: { url: "https://northgate.example/report?street=Mill%20Lane" } }),
  view("open_page", { input: { url: "javascript:alert(1)" } }),
  view("clipboard", { input: { text: "Meeting, 14 May\nPresent: Ada, Grace\nNext: June" }, state: left(52) }),
  view("color", { input: { prompt: "Pick your favourite colour" } }),
  view("form", { tool: "answer_form", input: { message: "Who comes to dinner?", schema: SCHEMA({ guests: { type: "integer", minimum: 1 }, dish: { type: "string", enum: ["Fish", "Pie"] }, notes: { type: "string", maxLength: 400 } }, ["guests", "dish"]) } }),
  view("form", { tool: "answer_form", input: { message: "Sign in to the council's page", url: "https://northgate.example/sign-in" } }),
  view("approval", { tool: "send_report", executor: "server", input: { to: "lighting@northgate.example", place: "14 Mill Lane, 54.9783, -1.6178", photo: "lamp.jpg" }, state: left(3 * 86_400) }),
  view("approval", { tool: "send_mail", executor: "server", input: { to: "all@example.com", text: Array.from({ length: 400 }, (_, number) => `word${number}`).join(" "), path: "a\u202eb\u200b.txt" }, state: left(3 * 86_400) }),
  view("approval", { tool: "send_parcel", executor: "server", input: { to: "Ada", parcel: { weight: 2 } }, state: left(3 * 86_400), more: { runsWith: RUNS_WITH } }),
  view("approval", { tool: "print_label", executor: "client", input: { name: "Ada" }, state: left(3 * 86_400), more: { runsWith: { input: { name: "Ada", copies: 1 }, defaults: [["copies"]], bySchema: true } } }),
];

const RUNS_WITH = { input: { to: "Ada", parcel: { weight: 2, unit: "kg" }, urgent: true, greeting: "Dear all" }, defaults: [["parcel", "unit"], ["urgent"], ["greeting"]], leftOut: ["remark", "copy_to"] };

const guessed = (): readonly CardView[] => [
  view("confirm", { tool: "user_confirm", input: { message: "Send the report now?" }, facts: { outputSchema: { enum: ["yes", "no"] } }, more: { card: undefined } }),
  view("select", { tool: "pick_size", input: { question: "Which size?" }, facts: { outputSchema: { enum: ["S", "M", "L"] } }, more: { card: undefined } }),
  view("text", { tool: "ask_name", input: { who: "What is your name?" }, facts: { outputSchema: { type: "string" } }, more: { card: undefined } }),
  view("form", { tool: "read_thermometer", input: { room: "kitchen" }, facts: { outputSchema: { type: "number", description: "Degrees Celsius." } }, more: { card: undefined } }),
  view("form", { tool: "file_ticket", input: { about: "street lamp" }, facts: { outputSchema: TICKET }, more: { card: undefined, title: "Ticket about a street lamp" } }),
  view("form", { tool: "stretch", input: { minutes: 5 }, facts: { outputSchema: { type: "null" } }, more: { card: undefined } }),
  view("unknown", { tool: "scan_sheets", input: { sheets: [{ size: "A4" }] }, facts: { description: "Scan sheets of paper.", outputSchema: null }, more: { card: undefined } }),
  view("unknown", { tool: "list_pages", input: {}, facts: { description: "Every page.", outputSchema: { type: "array", items: { type: "object" } } }, more: { card: undefined } }),
];

const states = (): readonly CardView[] => [
  view("photo", { tool: "take_photo", state: { name: "writing" } }),
  view("open_page", { tool: "open_url", input: { title: "Opening northgate.example" }, state: { name: "running" } }),
  view("unknown", { tool: "index_pages", state: { name: "running" }, executor: "server", more: { progress: "3 of 12 pages" } }),
  view("select", { input: { question: "Which calendar?", options: ["Work", "Home"] }, state: { name: "sending" } }),
  view("file", { input: { prompt: "Pick the invoice" }, state: { name: "undelivered", retryAt: Date.now() + 4_000 } }),
  view("text", { input: { question: "How many?" }, state: { name: "refused", refusal: { status: 400, code: "invalid", reason: "The answer does not fit 'count': \"a few\" is not of type \"integer\"." } } }),
  view("confirm", { input: { message: "Delete 12 old drafts?" }, state: left(7) }),
  view("confirm", { input: { message: "Delete 12 old drafts?" }, state: { name: "parked", deadline: Date.now() + 3 * 86_400_000 } }),
  view("unknown", { tool: "client_studio_scan", executor: "client", state: { name: "no-client", client: "studio-mac", since: Date.now() - 125_000 } }),
  view("approval", { tool: "delete_file", executor: "server", input: { path: "old-draft.txt" }, state: { name: "open", deadline: undefined, refusal: { status: 401, reason: "" } } }),
  view("approval", { tool: "delete_file", executor: "server", input: { path: "old-draft.txt" }, state: { name: "sending" } }),
  view("approval", { tool: "delete_file", executor: "server", input: { path: "old-draft.txt" }, state: { name: "parked", deadline: Date.now() + 3 * 86_400 * SECOND_MS } }),
  over("confirm", "user_confirm", { message: "Delete 12 old drafts?" }, { state: { name: "timed-out", afterSec: 60 } }),
  over("approval", "send_report", { to: "lighting@northgate.example" }, { state: { name: "denied", reason: "Wrong address" } }),
];

const rows = (): readonly CardView[] => [
  over("unknown", "find_lamp_owner", { street: "Mill Lane" }, { state: DONE, output: "Northgate Council, lighting team", executor: "server", tookMs: 84 }),
  over("location", "get_location", {}, { state: DONE, output: { lat: 54.9, lon: -1.6, accuracy: 20 }, tookMs: 2_100 }),
  over("open_page", "open_url", { url: "https://northgate.example/report" }, { state: DONE, output: { url: "https://northgate.example/report", viewKey: "v1" }, tookMs: 900 }),
  over("color", "pick_color", { prompt: "Your favourite colour" }, { state: DONE, output: { hex: "#00aa33" }, tookMs: 4_000 }),
  over("unknown", "delete_file", { path: "notes.md" }, { state: DONE, output: { deleted: "notes.md" }, executor: "server", tookMs: 31, isEdited: true }),
  over("unknown", "delete_file", { path: "old.txt" }, { state: DONE, output: { deleted: "old.txt" }, executor: "server", tookMs: 12, isAlwaysAllowed: true }),
  over("text", "ask_text", { question: "What shall I call you?" }, { state: { name: "skipped" } }),
  over("location", "get_location", {}, { state: { name: "declined" } }),
  over("confirm", "user_confirm", { message: "Send it?" }, { state: { name: "elsewhere" } }),
  over("unknown", "print_report", { name: "May" }, { state: { name: "failed", words: "The printer is out of paper." }, executor: "server", tookMs: 3_200 }),
];

export function shelves(): readonly Shelf[] {
  return [{ name: "Kinds", views: kinds() }, { name: "Guessed from the schemas", views: guessed() }, { name: "States", views: states() }];
}

export function finished(): readonly CardView[] {
  return rows();
}
