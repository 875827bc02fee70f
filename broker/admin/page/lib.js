// Preact with tagged templates instead of JSX: nothing has to be built.
export { html, render, useState, useEffect, useRef, useMemo } from "/page/preact-htm.js";
