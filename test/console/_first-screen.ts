import type { TestConsole } from './_console.ts'

/** Bytes as sent without those of fonts, and milliseconds until the heading is drawn, of a browser that has never seen the console. */
export async function firstScreen(console: TestConsole): Promise<{ bytes: number; ms: number }> {
  // Signs in and ends where nothing of the console has been loaded.
  await using opened = await console.open('/no-such-file.js')
  const page = await opened.context.newPage()
  const devtools = await opened.context.newCDPSession(page)
  await devtools.send('Network.enable')
  await devtools.send('Network.clearBrowserCache')
  let bytes = 0
  const fonts = new Set<string>()
  devtools.on('Network.responseReceived', ({ type, requestId }) => type === 'Font' && fonts.add(requestId))
  devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (!fonts.has(requestId)) bytes += encodedDataLength
  })
  const began = performance.now()
  await page.goto('/console/', { waitUntil: 'commit' })
  await page.getByRole('heading', { level: 1 }).waitFor()
  const ms = performance.now() - began
  await page.waitForLoadState('load')
  return { bytes, ms }
}
