import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { fakeModel } from '../../_app.ts'
import { until } from '../../gpu/launcher/_launch.ts'
import { temporaryFolder } from '../_infer.ts'
import { serve } from '../_serve.ts'
import { exitOf, secretOf, takeOver } from './_takeover.ts'

interface Status {
  engines: { id: string; state: string; busy: number }[]
  models: { model_id: string; waiting: number }[]
}

/** Writes a configuration. Returns its path. */
function configure(path: string, flags: string[]): string {
  writeFileSync(
    path,
    `listen: 127.0.0.1:0
gateway_processes: 1
limits: {min_free_disk: 1MiB, ballast: 1MiB}
models: [${JSON.stringify(fakeModel('local', flags, { concurrency: 1 }))}]
`,
  )
  return path
}

test('requests for an engine whose configuration has changed get the new one at once, and those that wait in the old server the old one', async () => {
  const dataDir = temporaryFolder()
  configure(join(dataDir, 'infer.yaml'), [])
  const first = await serve(dataDir)
  const headers = { authorization: `Bearer ${secretOf(dataDir)}`, 'content-type': 'application/json' }
  const status = async () => (await (await fetch(`${first.url}/api/system/status`, { headers })).json()) as Status
  const bodyOf = (content: string, stream = false) =>
    JSON.stringify({ model: 'local', stream, messages: [{ role: 'user', content }] })
  const post = () => request(`${first.url}/std/v1/chat/completions`, { method: 'POST', headers, agent: false })
  const answerOf = async (sent: ReturnType<typeof post>) => {
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: answer.statusCode, text: await text(answer) }
  }

  const stream = post().on('error', () => {})
  stream.end(bodyOf('mode:stream,tokens=6000,rate=10', true))
  await once(stream, 'response')
  const { id: before } = (await status()).engines[0]!
  const queued = post()
  queued.end(bodyOf('hello'))
  const answered = answerOf(queued)
  await until(async () => (await status()).models[0]!.waiting === 1)
  // Of another file, because the old server notices a change of its own.
  const changed = configure(join(temporaryFolder(), 'infer.yaml'), ['--rate', '7'])
  const taken = await takeOver(dataDir, '--config', changed)
  expect(taken.exitCode, taken.stderr).toBe(0)

  const fresh = post()
  fresh.end(bodyOf('hello'))
  expect(await answerOf(fresh)).toMatchObject({ status: 200 })
  const engines = (await status()).engines
  expect(engines.find(({ id }) => id === before)).toMatchObject({ busy: 1 })
  expect(engines).toHaveLength(2)

  stream.destroy()
  expect(await answered).toMatchObject({ status: 200 })
  await until(async () => !(await status()).engines.some(({ id }) => id === before))
  expect(await exitOf(first.child)).toBe(0)
})
