import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { movedPaths } from '../../../cli/models/fetch.ts'
import { openHub } from '../../fixtures/hub.ts'
import { infer, inferProcess, temporaryFolder } from '../_infer.ts'

test('several engines that start at once on a node download a model once, and then become their commands', async () => {
  const hub = await openHub({ 'o/m': { files: { 'm.gguf': randomBytes(2_000_000) } } })
  onTestFinished(() => hub.close())
  const cache = temporaryFolder()
  const commit = hub.commitOf('o/m')
  const at = '/nowhere/models--o--m'
  const script = 'const [, path] = process.argv; console.log(path, fs.statSync(path).size, process.env.HF_HUB_OFFLINE)'
  const words = ['--file', 'm.gguf', '--at', at, '--cache', cache, '--', 'node', '-e', script]
  const start = () =>
    inferProcess(['model', 'fetch', `hf:o/m@${commit}`, ...words, `${at}/snapshots/${commit}/m.gguf`], {
      env: { HF_ENDPOINT: hub.endpoint, HF_HUB_OFFLINE: '0' },
    })
  const ended = await Promise.all([start(), start(), start()])
  const path = join(cache, 'models--o--m/snapshots', commit, 'm.gguf')
  for (const { exitCode, stdout } of ended) expect([exitCode, stdout]).toEqual([0, `${path} 2000000 1\n`])
  expect(hub.requests.filter(one => one.at === 'store')).toHaveLength(1)
  expect(ended.some(({ stderr }) => stderr.includes('m.gguf: 100 %'))).toBe(true)

  await hub.close()
  const again = await infer(['model', 'fetch', `hf:o/m@${commit}`, '--file', 'm.gguf', '--cache', cache])
  expect([again.exitCode, again.stdout]).toEqual([0, `${join(cache, 'models--o--m')}\n`])
  const missing = await inferProcess(['model', 'fetch', `hf:o/m@${commit}`, '--cache', cache, '--', 'no-such-engine'])
  expect(missing.stderr).toContain("The program 'no-such-engine' is not installed here, or not on PATH.")
  expect(missing.exitCode).toBe(1)
})

test.each([
  ['/x/m', '/s/m'],
  ['/x/m/a.gguf', '/s/m/a.gguf'],
  ['--model=/x/m/a,/x/m/b', '--model=/s/m/a,/s/m/b'],
  ['/x/m-large/a.gguf', '/x/m-large/a.gguf'],
  ['nothing', 'nothing'],
])('the command names %s as %s', (word, moved) => expect(movedPaths(word, '/x/m', '/s/m')).toBe(moved))
