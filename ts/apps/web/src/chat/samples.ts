// What a newcomer may ask: one for each ability. Shown only where the server has the tool for it.
import { Braces, Camera, ClipboardCopy, CloudSun, ExternalLink, FileUp, HelpCircle, List, type LucideIcon, MapPin, MessageSquare, Palette, Plug, ShieldCheck, Split, Type, Unplug } from "lucide-react";

export interface Sample {
  readonly title: string;
  readonly about: string;
  readonly prompt: string;
  readonly Icon: LucideIcon;
  /** The tools it needs; none: it shows what happens when there is no such tool. */
  readonly tools: readonly string[];
}

export const FIRST: readonly Sample[] = [
  { title: "Where am I?", about: "Shares your place, once", prompt: "Where am I?", Icon: MapPin, tools: ["get_location"] },
  { title: "Take a photo", about: "Uses your camera, after your yes", prompt: "Take a photo", Icon: Camera, tools: ["take_photo"] },
  { title: "Pick a file", about: "From this device", prompt: "Let me pick a file", Icon: FileUp, tools: ["pick_file"] },
  { title: "Copy a greeting", about: "Puts words on your clipboard", prompt: 'Copy "Hello from far away"', Icon: ClipboardCopy, tools: ["copy_to_clipboard"] },
  { title: "Open a page", about: "Beside this chat", prompt: "Open https://example.com", Icon: ExternalLink, tools: ["open_url"] },
  { title: "Delete an old draft", about: "On the server, after your yes", prompt: "Delete the file old-draft.txt", Icon: ShieldCheck, tools: ["delete_file"] },
];

export const MORE: readonly Sample[] = [
  { title: "Yes or no", about: "A question", prompt: "Ask me to confirm something", Icon: HelpCircle, tools: ["user_confirm"] },
  { title: "My name", about: "A text", prompt: "Ask me my name", Icon: Type, tools: ["ask_text"] },
  { title: "Choose lunch", about: "One of several", prompt: "Help me choose lunch", Icon: List, tools: ["select_option"] },
  { title: "Pick a colour", about: "A colour", prompt: "Let me pick a colour", Icon: Palette, tools: ["pick_color"] },
  { title: "Two things at once", about: "Two questions in one turn", prompt: "Ask me two things at once", Icon: Split, tools: ["ask_text", "pick_color"] },
  { title: "Read the thermometer", about: "A tool that this page has no card for", prompt: "Read the thermometer", Icon: Braces, tools: ["read_thermometer"] },
  { title: "Make me a coffee", about: "A tool that nobody has", prompt: "Make me a coffee", Icon: Plug, tools: ["user_confirm"] },
  { title: "A long story", about: "Pull the plug in the middle", prompt: "Tell me a long story", Icon: Unplug, tools: ["user_confirm"] },
];

const SIGNS: readonly (readonly [RegExp, LucideIcon])[] = [
  [/\bweather\b/i, CloudSun],
  [/\b(photo|camera|picture|scan|receipt)/i, Camera],
  [/\b(where am i|location|place|map)\b/i, MapPin],
  [/\b(delete|remove|send|approve)\b/i, ShieldCheck],
  [/\b(copy|clipboard)\b/i, ClipboardCopy],
  [/\bhttps?:|\bopen\b/i, ExternalLink],
  [/\b(files?|upload|rename|document)\b/i, FileUp],
  [/\bcolou?r\b/i, Palette],
];

/** A chat in the list, by what it begins with: the sample it came from, or a word that says what it is about. */
export function iconFor(title: string): LucideIcon {
  const sample = [...FIRST, ...MORE].find(({ prompt }) => prompt === title);
  return sample?.Icon ?? SIGNS.find(([words]) => words.test(title))?.[1] ?? MessageSquare;
}

export function offered(samples: readonly Sample[], has: { has(tool: string): boolean }): readonly Sample[] {
  return samples.filter(({ tools }) => tools.every((tool) => has.has(tool)));
}
