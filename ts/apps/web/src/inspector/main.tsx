import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "../theme/theme.css";
import { Brand } from "../theme/brand.tsx";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <main className="p-4"><Brand /></main>
  </StrictMode>,
);
