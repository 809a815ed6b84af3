import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { openapi } from '../../server/docs/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { storedExamples } from './_example-run.ts'

const cli = resolve('node_modules/@redocly/cli/bin/cli.js')
/** Redocly sends usage data and checks for newer versions unless configured otherwise. */
const silent = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' }

interface Lint {
  totals: { errors: number; warnings: number }
  problems: { ruleId: string; message: string; location: { pointer?: string }[] }[]
}

test("the reference has no error or warning by Redocly's recommended rules", () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-test-'))
  try {
    const path = join(folder, 'openapi.json')
    writeFileSync(path, JSON.stringify(openapi(routeTable(), '1.0.0', storedExamples())))
    const args = [cli, 'lint', path, '--extends=recommended-strict', '--format=json', '--max-problems=1000']
    const options = { cwd: folder, env: { ...silent, HOME: folder }, encoding: 'utf8' } as const
    let text: string
    try {
      text = execFileSync(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    } catch (thrown) {
      text = (thrown as { stdout: string }).stdout
    }
    const { problems, totals } = JSON.parse(text.slice(text.indexOf('{'))) as Lint
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([
      // A WebSocket begins with 101.
      ['operation-2xx-response', expect.any(String), '#/paths/~1std~1v1~1realtime/get/responses'],
    ])
    expect(totals.errors + totals.warnings).toBe(1)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
