// Preact with tagged templates instead of JSX: nothing has to be built.
import { html } from "/page/preact-htm.js";

export { html, render, useState, useEffect, useRef, useMemo } from "/page/preact-htm.js";

// In place of a view: why it is not there, which may be said elsewhere ("").
export function Absent({ reason }) {
  return reason === "" ? null : html`<section class="sheet"><p class="empty">${reason ?? "Looking …"}</p></section>`;
}
