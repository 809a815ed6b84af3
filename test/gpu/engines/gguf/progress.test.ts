import { expect, test } from 'vitest'
import { startEngine } from './_engine.ts'

test.each([
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] }],
  ['/v1/completions', { prompt: ['Once', 'upon a time'] }],
])('on request a stream of %s begins with the length of its prompt', async (path, fields) => {
  const engine = await startEngine({
    model: 'tiny-chat.gguf',
    tasks: ['std/chat-completion', 'std/completion'],
    context: 256,
  })
  const stream = async (more: object) => {
    const body = JSON.stringify({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      ...fields,
      ...more,
    })
    const text = await (await fetch(engine.address + path, { method: 'POST', body })).text()
    return text
      .split('\n\n')
      .slice(0, -2)
      .map(
        event =>
          JSON.parse(event.slice('data: '.length)) as {
            choices: object[]
            prompt_progress?: object
            usage?: { prompt_tokens: number }
          },
      )
  }
  const events = await stream({ return_progress: true })
  const total = events.at(-1)!.usage!.prompt_tokens
  expect(total).toBeGreaterThan(0)
  expect(events.map(event => event.prompt_progress)).toEqual([{ total }, ...events.slice(1).map(() => undefined)])
  expect(events[0]!.choices).toEqual([])
  expect((await stream({})).some(event => 'prompt_progress' in event)).toBe(false)
})
