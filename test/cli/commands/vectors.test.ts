import { once } from 'node:events'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { entry, infer, json } from '../_infer.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

let app: TestApp
let env: Record<string, string>
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
  env = { INFER_DATA_DIR: app.dataDir }
})
afterAll(() => app[Symbol.asyncDispose]())

interface Vector {
  index: number
  text: string
  embedding: number[]
}
const vectors = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Vector)

test('embed: a pipe gets one vector per line, in the order of the texts', async () => {
  const { exitCode, stdout, stderr } = await infer(['embed', 'fake', 'one', 'two'], { env })
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(vectors(stdout).map(({ index, text }) => [index, text])).toEqual([
    [0, 'one'],
    [1, 'two'],
  ])
  expect(vectors(stdout).every(({ embedding }) => embedding.length > 0)).toBe(true)
})

test('embed: more lines of standard input than one request takes', async () => {
  const texts = Array.from({ length: 150 }, (_, at) => `text ${at}`)
  const { exitCode, stdout } = await infer(['embed', 'fake'], { env, input: `${texts.join('\n')}\n\n` })
  expect(exitCode).toBe(0)
  expect(vectors(stdout).map(({ text }) => text)).toEqual(texts)
  expect(vectors(stdout).map(({ index }) => index)).toEqual(texts.map((_, at) => at))
})

test.each([['embed'], ['rerank', 'a query'], ['chat', '--json']])(
  '%s prints a notice about a pipe that sends nothing',
  async (name, ...more) => {
    const args = name === 'chat' ? [entry, name, ...more] : [entry, name, 'fake', ...more]
    const child = execa(process.execPath, args, { env: { PATH: '', HOME: '/nonexistent', ...env }, extendEnv: false })
    const [said] = (await once(child.stderr, 'data')) as [Buffer]
    expect(String(said)).toMatch(/^Waiting for the end of standard input/)
    child.stdin.end('one\n')
    expect((await child).exitCode).toBe(0)
  },
)

test('embed --json prints one API answer, however many requests it took', async () => {
  const input = Array.from({ length: 70 }, (_, at) => `text ${at}`).join('\n')
  const ended = await infer(['embed', 'fake', '--json'], { env, input })
  const answer = json(ended) as { object: string; data: { index: number }[]; usage: { total_tokens: number } }
  expect(answer.object).toBe('list')
  expect(answer.data.map(({ index }) => index)).toEqual(Array.from({ length: 70 }, (_, at) => at))
  expect(answer.usage.total_tokens).toBeGreaterThanOrEqual(70)
})

test.skipIf(!hasTerminal)('embed: a terminal gets a summary', async () => {
  const terminal = inTerminal(['embed', 'fake', 'a text'], env)
  expect(await terminal.ends()).toBe(0)
  expect(terminal.everything()).toMatch(/dimensions {2}vector.*text/)
  expect(terminal.everything()).toMatch(/\[-?\d\.\d{3}, .*a text/)
})

test('rerank sorts with the best first and prints the line numbers', async () => {
  const { exitCode, stdout } = await infer(['rerank', 'fake', 'a query'], { env, input: 'one\ntwo\nthree\n' })
  expect(exitCode).toBe(0)
  const [head, ...rows] = stdout.trimEnd().split('\n')
  expect(head).toMatch(/^rank +score +line +document$/)
  expect(rows.map(row => row.split(/ +/)[0])).toEqual(['1', '2', '3'])
  const scores = rows.map(row => Number(row.split(/ +/)[1]))
  expect(scores).toEqual(scores.toSorted((a, b) => b - a))
  for (const row of rows) expect(['one', 'two', 'three'][Number(row.split(/ +/)[2]) - 1]).toBe(row.split(/ +/)[3])
})

test('rerank --top --json prints the answer of the API', async () => {
  const ended = await infer(['rerank', 'fake', 'q', 'one', 'two', 'three', '--top', '2', '--json'], { env })
  expect(json(ended)).toMatchObject({ object: 'list', data: [{ index: expect.any(Number) as number }, {}] })
  expect((json(ended) as { data: unknown[] }).data).toHaveLength(2)
})

test('an error of the server is printed with its message', async () => {
  const ended = await infer(['embed', 'ghost', 'x'], { env })
  expect([ended.exitCode, ended.stdout]).toEqual([1, ''])
  expect(ended.stderr).toContain("'ghost'")
})
