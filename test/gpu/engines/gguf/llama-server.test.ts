import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { file, type Json, startEngine } from './_engine.ts'

/** llama.cpp's own server, where it is installed: named by INFER_TEST_LLAMA_SERVER or found on PATH. */
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

/** Returns a function that posts to it, once it is healthy. */
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

  test('the token counts of answers that end without a limit', async () => {
    const server = await startServer('tiny-chat.gguf', ['--jinja'])
    const ours = await startEngine({ model: 'tiny-chat.gguf', tasks: ['std/chat-completion'], context: 512 })
    const messages = [{ role: 'user', content: 'Say something.' }]
    const asked = { model: 'toy', temperature: 0, max_tokens: 400, messages }
    const { body } = await ours.post('/v1/chat/completions', asked)
    const theirs = await server('/v1/chat/completions', asked)
    expect(body.choices[0].finish_reason).toBe('stop')
    expect(theirs.choices[0].finish_reason).toBe('stop')
    const { prompt_tokens, completion_tokens } = theirs.usage
    expect(body.usage).toMatchObject({ prompt_tokens, completion_tokens })
  })

  test.each([300, 512, 100_000])('an answer of at most %i tokens ends with the context', async max_tokens => {
    const server = await startServer('tiny-chat-random.gguf', ['--jinja'])
    const ours = await startEngine({ model: 'tiny-chat-random.gguf', tasks: ['std/completion'], context: 512 })
    const asked = { model: 'toy', temperature: 0, max_tokens, prompt: 'x'.repeat(300), ignore_eos: true }
    const { body } = await ours.post('/v1/completions', asked)
    const theirs = await server('/v1/completions', asked)
    expect(body.choices[0].finish_reason).toBe(theirs.choices[0].finish_reason)
    expect(body.usage.total_tokens).toBe(theirs.usage.total_tokens)
  })

  test('rerank: the same tokens and the same scores', async () => {
    const server = await startServer('tiny-rerank.gguf', ['--reranking'])
    const ours = await startEngine({ model: 'tiny-rerank.gguf', tasks: ['std/rerank'] })
    const asked = { model: 'toy', query: 'cat', documents: ['cat street', 'market prices', 'a'] }
    const { body } = await ours.post('/v1/rerank', { ...asked, raw_scores: true })
    const theirs = await server('/v1/rerank', asked)
    expect(body.usage.total_tokens).toBe(theirs.usage.total_tokens)
    const scores = ({ results }: Json) =>
      [...results].sort((a: Json, b: Json) => a.index - b.index).map(({ relevance_score }: Json) => relevance_score)
    for (const [at, score] of scores(body).entries()) expect(score).toBeCloseTo(scores(theirs)[at], 3)
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
