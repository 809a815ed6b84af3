import { expect, test } from 'vitest'
import { shellWord, tryNext } from '../../../cli/serve/try-next.ts'

const chat = { id: 'org/chat', tasks: ['std/chat-completion'] }
const embed = { id: 'embed', tasks: ['std/embeddings'] }
const facts = {
  own: { line: (args: string) => `./infer ${args}`, folder: undefined },
  url: 'http://127.0.0.1:8787',
  tokenPath: '/data/root-token',
}

test('a chat model gets curl and both OpenAI clients, at most two lines each', () => {
  const examples = tryNext({ ...facts, models: [embed, chat] })
  expect(examples.map(({ label }) => label.split(' ')[0])).toEqual(['In', 'curl', 'Python', 'JavaScript'])
  expect(examples.every(({ lines }) => lines.length <= 2)).toBe(true)
  expect(examples.slice(1).every(({ lines }) => lines.join().includes('org/chat'))).toBe(true)
})

test('the token is read from its file', () => {
  expect(tryNext({ ...facts, models: [chat] })[1]!.lines[0]).toContain('Bearer $(cat /data/root-token)')
})

test('without a chat model, embeddings are tried', () => {
  expect(tryNext({ ...facts, models: [embed] })).toEqual([
    { label: 'curl', lines: [expect.stringContaining('/std/v1/embeddings') as string] },
  ])
})

test('without any model the list of models is requested', () => {
  expect(tryNext({ ...facts, models: [] })[0]!.lines[0]).toContain('/std/v1/models -H')
})

test.each([
  ['/data/root-token', '/data/root-token'],
  ['/my data/root-token', "'/my data/root-token'"],
  ["/it's/x", "'/it'\\''s/x'"],
  ['/$HOME/`x`', "'/$HOME/`x`'"],
])('the path %s is quoted where the shell needs it', (path, word) => {
  expect(shellWord(path)).toBe(word)
})
