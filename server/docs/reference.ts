/**
 * The page of the interactive reference. Its program is Scalar's, served from our own assets; the configuration turns
 * off everything that would speak to another host (fonts, proxy, telemetry), and the response's policy forbids it.
 */
export const reference = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>infer: API reference</title>
<link rel="icon" href="data:,">
</head>
<body>
<div id="reference"></div>
<script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

/** Starts the reference; a file of its own, so that the page needs no inline script. */
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
