/**
 * The page of the interactive reference. It uses Scalar, served from infer's own assets. The configuration turns off
 * all requests to other hosts (fonts, proxy, telemetry), and the response's content security policy forbids them. The
 * bar at the top links to the guides.
 */
export const referencePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>infer: API reference</title>
<link rel="icon" href="data:,">
<style>
:root { --scalar-custom-header-height: 3rem; }
.bar { position: sticky; top: 0; z-index: 100; display: flex; gap: 1rem; align-items: center; height: 3rem; padding: 0 1.25rem; font: 16px/1.6 system-ui, sans-serif; color: var(--scalar-color-1); background: var(--scalar-background-1); border-bottom: 1px solid var(--scalar-border-color); }
.bar a { color: inherit; }
.bar b { margin-right: .5rem; }
</style>
</head>
<body>
<nav class="bar"><b>infer</b><a href="/docs/guides">Guides</a><a href="/docs/configuration">Configuration</a></nav>
<div id="reference"></div>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/** Starts the reference. A separate file, so that the page needs no inline script. */
export const start = `Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  hideModels: true,
  showDeveloperTools: 'never',
  persistAuth: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  authentication: { preferredSecurityScheme: 'token' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})
`
