import { LiveThread } from "@farhand/client";
import type { Handlers } from "./tools.ts";
const handlers: Handlers = {
  open_url: ({ url }) => ({ url, viewKey: 'v1' }),
  user_confirm: ({ message }) => (message.endsWith('?') ? 'yes' : 'no'),
  ask_text: async ({ question }) => question,
  select_option: ({ options }) => options[0] ?? '',
  pick_file: () => ({ name: 'a', type: 'text/plain', size: 1, ref: 'blob_1' }),
  pick_color: () => ({ hex: '#ffffff' }),
  get_location: () => ({ place: 'Oslo' }),
  copy_to_clipboard: () => true,
  read_thermometer: ({ room }) => room.length,
  take_photo: ({ camera = 'front' }, { signal }) => ({ name: camera, type: String(signal.aborted), size: 1, ref: 'blob_1' }),
  open_door: () => 1,
};
export const thread = new LiveThread({ threadId: "t", handlers });