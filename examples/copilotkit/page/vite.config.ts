// Builds the page and forwards its requests to farhand. The proxy signs in, so that the page contains no token.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const { FARHAND_URL = "http://127.0.0.1:8787", FARHAND_TOKEN } = process.env;
const headers: Record<string, string> = FARHAND_TOKEN ? { authorization: `Bearer ${FARHAND_TOKEN}` } : {};
// an object, not just the address: with an address alone Vite would change the Host header, and farhand would see a page from elsewhere
const proxy = { "/copilotkit": { target: FARHAND_URL, headers } };

export default defineConfig({
  plugins: [react()],
  build: { target: "es2023", chunkSizeWarningLimit: 10_000 },
  server: { proxy },
  preview: { proxy },
});
