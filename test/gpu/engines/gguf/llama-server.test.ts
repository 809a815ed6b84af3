import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { file, type Json, startEngine } from './_engine.ts'

/** llama.cpp's own server, where one is installed: named by INFER_TEST_LLAMA_SERVER or found on PATH. */
const program = process.env.INFER_TEST_LLAMA_SERVER ?? 'llama-server'
const there = spawnSync(program, ['--version'], { env: process.env }).status === 0
const running: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(running.map(stop => stop())))

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Gives what posts to it, once it is healthy. */
async function startServer(model: string, more: string[]): Promise<(path: string, body: Json) => Promise<Json>> {
  const port = await freePort()
  const args = ['-m', file(model), '--host', '127.0.0.1', '--port', String(port), '-t', '1', '-tb', '1', '-np', '1']
  const child = spawn(program, [...args, '-c', '512', '--offline', '--no-ui', ...more], {
    stdio: 'ignore',
    env: { ...process.env, OMP_WAIT_POLICY: 'PASSIVE' },
  })
  const exited = once(child, 'exit')
  running.push(() => {
    child.kill('SIGKILL')
    return exited
  })
  const address = `http://127.0.0.1:${port}`
  await expect
    .poll(
      () =>
        fetch(`${address}/health`).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 60_000 },
    )
    .toBe(200)
  return async (path, body) => {
    const response = await fetch(address + path, { method: 'POST', body: JSON.stringify(body) })
    if (response.status !== 200) throw new Error(await response.text())
    return (await response.json()) as Json
  }
}

describe.skipIf(!there)(`the same as ${program}${there ? '' : ' (not installed: skipped)'}`, () => {
  test.each(['tiny-chat.gguf', 'tiny-chat-random.gguf'])('greedy text of %s', async model => {
    const server = await startServer(model, ['--jinja'])
    const ours = await startEngine({ model, tasks: ['std/chat-completion', 'std/completion'], context: 512 })
    const greedy = { model: 'toy', temperature: 0, max_tokens: 100 }
    for (const prompt of ['Once upon a time', 'x'.repeat(300)]) {
      const { body } = await ours.post('/v1/completions', { ...greedy, prompt })
      expect(body.choices[0].text).toBe((await server('/v1/completions', { ...greedy, prompt })).choices[0].text)
    }
    const messages = [{ role: 'user', content: 'Say something.' }]
    const { body } = await ours.post('/v1/chat/completions', { ...greedy, messages })
    const theirs = await server('/v1/chat/completions', { ...greedy, messages })
    expect(body.choices[0].message.content).toBe(theirs.choices[0].message.content)
  })

  test('vectors', async () => {
    const server = await startServer('tiny-embed.gguf', ['--embeddings'])
    const ours = await startEngine({ model: 'tiny-embed.gguf', tasks: ['std/embeddings'] })
    const asked = { model: 'toy', input: ['the cat sat on the street', 'market prices', 'a'] }
    const [mine, theirs] = [(await ours.post('/v1/embeddings', asked)).body, await server('/v1/embeddings', asked)]
    for (const [at, { embedding }] of mine.data.entries()) {
      const other: number[] = theirs.data[at].embedding
      const cosine = (embedding as number[]).reduce((sum, value, place) => sum + value * other[place]!, 0)
      expect(cosine / Math.hypot(...other)).toBeGreaterThan(0.9999)
    }
  })
})
