import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { answer, chunk, fakeServer, models, type Seen, streamWords } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

const enter = '\r'
const controlC = '\u0003'
const controlD = '\u0004'

async function talk(say: (seen: Seen, response: ServerResponse) => void) {
  const server = await fakeServer((seen, response) =>
    seen.path === '/std/v1/models' ? answer(response, 200, models) : say(seen, response),
  )
  const terminal = inTerminal(['chat'], { INFER_URL: server.url, INFER_TOKEN: 'sk-test' })
  const asked = () => server.seen.filter(({ method }) => method === 'POST').map(({ body }) => body)
  await terminal.sees('Chat with tiny-chat')
  await terminal.sees('> ')
  return { terminal, asked }
}

test.skipIf(!hasTerminal)('the conversation is remembered until it is cleared, and Ctrl-D exits', async () => {
  const { terminal, asked } = await talk((_, response) => streamWords(response, ['Hi ', 'there']))
  terminal.types(`Hello${enter}`)
  await terminal.sees('Hi there')
  await terminal.sees('2 tokens')
  await terminal.sees('> ')
  terminal.types(`Again\\${enter}`)
  await terminal.sees('... ')
  terminal.types(`please${enter}`)
  await terminal.sees('2 tokens')
  await terminal.sees('> ')
  terminal.types(`/clear${enter}`)
  await terminal.sees('Started a new conversation.')
  terminal.types(`/system Be brief.${enter}`)
  await terminal.sees('> ')
  terminal.types(`/model other-chat${enter}`)
  await terminal.sees('> ')
  terminal.types(`New${enter}`)
  await terminal.sees('2 tokens')
  terminal.types(controlD)
  expect(await terminal.ends()).toBe(0)
  expect(asked()).toMatchObject([
    { model: 'tiny-chat', messages: [{ role: 'user', content: 'Hello' }] },
    {
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Hi there' },
        { role: 'user', content: 'Again\nplease' },
      ],
    },
    {
      model: 'other-chat',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'New' },
      ],
    },
  ])
})

test.skipIf(!hasTerminal)('Ctrl-C stops the answer and ends the request, and the session continues', async () => {
  const gone = Promise.withResolvers<void>()
  let first = true
  const { terminal, asked } = await talk((_, response) => {
    if (!first) return streamWords(response, ['done'])
    first = false
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(chunk({ content: 'endless' }))
    response.on('close', () => gone.resolve())
  })
  terminal.types(`Hello${enter}`)
  await terminal.sees('endless')
  terminal.types(controlC)
  await terminal.sees('(stopped)')
  await gone.promise
  await terminal.sees('> ')
  terminal.types(`Go on${enter}`)
  await terminal.sees('done')
  terminal.types(`/exit${enter}`)
  expect(await terminal.ends()).toBe(0)
  expect(asked()[1]).toMatchObject({ messages: [{ content: 'Hello' }, { content: 'endless' }, { content: 'Go on' }] })
})

test.skipIf(!hasTerminal)(
  'a failure is shown and the session continues; control characters do not reach the screen',
  async () => {
    let asked = 0
    const { terminal } = await talk((_, response) => {
      if (++asked === 1) return answer(response, 404, { error: { code: 'model_not_found', message: 'No such model.' } })
      streamWords(response, ['a\u001b[2Jb\u0007'])
    })
    terminal.types(`Hello${enter}`)
    await terminal.sees('No such model.')
    await terminal.sees('> ')
    terminal.types(`Again${enter}`)
    await terminal.sees('a[2Jb')
    terminal.types(`/nonsense${enter}`)
    await terminal.sees('There is no command /nonsense.')
    terminal.types(`/model nobody${enter}`)
    await terminal.sees("There is no chat model 'nobody' here. Offered: tiny-chat, other-chat.")
    terminal.types(controlD)
    expect(await terminal.ends()).toBe(0)
    expect(terminal.everything()).not.toContain('\u0007')
  },
)

test.skipIf(!hasTerminal)('text typed during an answer is not shown and is sent next', async () => {
  const { terminal, asked } = await talk((_, response) => {
    if (asked().length > 1) return streamWords(response, ['second answer'])
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(chunk({ content: 'first' }))
  })
  terminal.types(`One${enter}`)
  await terminal.sees('first')
  // Keys are read in order: once the stop is shown, the line before it has been read.
  terminal.types(`Two${enter}${controlC}`)
  await terminal.sees('(stopped)')
  await terminal.sees('second answer')
  terminal.types(controlD)
  expect(await terminal.ends()).toBe(0)
  expect(asked()[1]).toMatchObject({ messages: [{ content: 'One' }, { content: 'first' }, { content: 'Two' }] })
  expect(terminal.everything()).not.toContain('Two')
})
