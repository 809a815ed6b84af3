import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Client } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { sglang } from '../../../gpu/presets/sglang.ts'
import { sendParking } from '../../../gpu/requests/parking.ts'
import { fakeEngine, temporary, until } from '../launcher/_launch.ts'

const { park, wake } = sglang.parking![1]!

/** An engine that gives memory back as SGLang does. */
async function open(...flags: string[]) {
  const socketPath = join(temporary(), 'engine.sock')
  const all = ['--as', 'sglang', '--socket', socketPath, '--enable-memory-saver', ...flags]
  const child = spawn(process.execPath, [fakeEngine, ...all], { stdio: ['ignore', 'ignore', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let errors = ''
  child.stderr.on('data', text => (errors += text))
  const client = new Client('http://engine', { socketPath, pipelining: 2 })
  onTestFinished(() => client.destroy())
  const get = async (path: string) => (await client.request({ path, method: 'GET' })).body.json()
  await until(() => get('/health').then(Boolean, () => false))
  const chat = async (content: string) => {
    const body = JSON.stringify({ messages: [{ role: 'user', content }] })
    const headers = { 'content-type': 'application/json' }
    const sent = new Client('http://engine', { socketPath })
    onTestFinished(() => sent.destroy())
    const answer = await sent.request({ path: '/v1/chat/completions', method: 'POST', headers, body })
    return answer.body.text()
  }
  const busy = () => until(async () => ((await get('/stats')) as { running: number }).running > 0)
  const send = (calls: typeof park) => sendParking({ origin: 'http://engine', socketPath }, [], calls)
  return { chat, busy, send, exited: once(child, 'exit'), errors: () => errors }
}

test('SGLang is parked once a request has ended that still runs, and answers as before when it was woken', async () => {
  const { chat, busy, send } = await open('--enable-weights-cpu-backup')
  const running = chat('mode:slow,ms=300')
  await busy()
  await send(park)
  expect(await running).toContain('"content"')
  await send(wake)
  expect(await chat('Hello')).toContain('"content"')
})

test.each<[name: string, act: (engine: Awaited<ReturnType<typeof open>>) => Promise<unknown>, says: RegExp]>([
  [
    'is parked while a request runs',
    async ({ chat, busy, send }) => {
      void chat('mode:slow,ms=5000').catch(() => {})
      await busy()
      return send(park.slice(1))
    },
    /only when server is idle/,
  ],
  ['is woken and was not parked', ({ send }) => send(wake), /KeyError: 'kv_cache'/],
  ['is parked twice', async ({ send }) => [await send(park), await send(park)], /not active/],
  ['gets a request while it is parked', async ({ send, chat }) => [await send(park), await chat('Hello')], /Triton/],
])('the stand-in of SGLang ends, as the real one does, when it %s', async (_name, act, says) => {
  const engine = await open('--enable-weights-cpu-backup')
  await expect(act(engine)).rejects.toThrow()
  await engine.exited
  expect(engine.errors()).toMatch(says)
})

test('the stand-in of SGLang refuses a call without a body, and forgets weights that it does not keep', async () => {
  const { send, chat } = await open()
  await expect(send([{ path: '/release_memory_occupation' }])).rejects.toThrow(/422/)
  await send(park)
  await send(wake)
  expect(await chat('Hello')).toContain('garbage')
})
