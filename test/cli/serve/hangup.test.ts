import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { belongsToTerminal } from '../../../cli/serve/hangup.ts'
import { prepare, serve } from '../_serve.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

test.each([
  ['a shell’s foreground job', '7 (node) S 1 7 7 34816 7 4194304', true, true],
  ['a name with spaces and brackets', '7 (a) b (c)) S 1 7 7 34816 7 4194304', true, true],
  ['systemd, setsid', '7 (node) S 1 7 7 0 -1 4194304', false, false],
  ['setsid with a terminal as output', '7 (node) S 1 7 7 0 -1 4194304', true, false],
  ['nohup, or all three streams redirected', '7 (node) S 1 7 7 34816 7 4194304', false, false],
  ['no /proc', undefined, true, false],
])('%s', (_, stat, usesTerminal, expected) => {
  expect(belongsToTerminal({ stat, usesTerminal })).toBe(expected)
})

test.skipIf(!hasTerminal)('closing the terminal stops the server that was started in it', async () => {
  const dataDir = prepare()
  const terminal = inTerminal(['serve', '--data-dir', dataDir])
  await terminal.sees('is ready at ')
  const path = join(dataDir, 'server.json')
  const { pid } = JSON.parse(readFileSync(path, 'utf8')) as { pid: number }
  terminal.closes()
  await expect.poll(() => existsSync(path)).toBe(false)
  await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false)
})

test('a second start on the same address names the infer that uses it', async () => {
  const dataDir = prepare()
  const first = await serve(dataDir)
  const second = await serve(prepare(), ['--listen', first.url.replace('http://', '')]).catch(String)
  expect(second).toContain(
    `another infer listens there (process ${first.child.pid}, data directory ${dataDir}). Stop it with 'kill ${first.child.pid}', or choose another address with --listen`,
  )
})
