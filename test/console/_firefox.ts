import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, firefox as driver } from 'playwright-core'

const between = join(import.meta.dirname, '../fixtures/firefox.ts')
const quoted = (text: string): string => `'${text.replaceAll("'", `'"'"'`)}'`

/** Starts the Firefox that people have, by WebDriver BiDi. */
export async function launchFirefox(program: string): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'infer-firefox-'))
  const executablePath = join(folder, 'firefox')
  const command = [process.execPath, between, program].map(quoted).join(' ')
  writeFileSync(executablePath, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 })
  const browser = await driver.launch({
    executablePath,
    channel: 'moz-firefox',
    firefoxUserPrefs: { 'ui.prefersReducedMotion': 1 },
  })
  browser.once('disconnected', () => rmSync(folder, { recursive: true, force: true }))
  return browser
}
