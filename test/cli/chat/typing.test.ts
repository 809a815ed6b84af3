import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../_infer.ts'
import { answer, fakeServer, models, streamWords } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

const enter = '\r'
const controlC = '\u0003'
const controlD = '\u0004'
const up = '\u001b[A'
const paste = (text: string) => `\u001b[200~${text.replaceAll('\n', '\r')}\u001b[201~`

async function talk(home = temporaryFolder(), args: string[] = []) {
  const server = await fakeServer((seen, response) =>
    seen.path === '/std/v1/models' ? answer(response, 200, models) : streamWords(response, ['an ', 'answer']),
  )
  const env = { INFER_URL: server.url, INFER_TOKEN: 'sk-test', HOME: home }
  const terminal = inTerminal(['chat', ...args], env)
  const asked = () =>
    server.seen
      .filter(({ method }) => method === 'POST')
      .map(({ body }) => (body as { messages: { content: unknown }[] }).messages.at(-1)!.content)
  await terminal.sees('Chat with tiny-chat')
  await terminal.sees('> ')
  const answered = async () => {
    await terminal.sees('2 tokens')
    await terminal.sees('> ')
  }
  const leave = async () => {
    terminal.types(controlD)
    expect(await terminal.ends()).toBe(0)
  }
  return { terminal, asked, answered, leave, home }
}

test.skipIf(!hasTerminal)('pasted text is one message, sent with Enter', async () => {
  const { terminal, asked, answered, leave } = await talk()
  await terminal.sees('')
  expect(terminal.everything()).toContain('\u001b[?2004h')
  terminal.types(`Explain: ${paste('one\n\ttwo\n\nthree\n')}`)
  await terminal.sees('three')
  await terminal.sees('... ')
  terminal.types(`and be brief${enter}`)
  await answered()
  terminal.types(paste('/usr/bin/x: not found\n/help'))
  terminal.types(enter)
  await answered()
  terminal.types(paste('dropped\nby'))
  await terminal.sees('by')
  terminal.types(controlC)
  await terminal.sees('> ')
  terminal.types(`last${enter}`)
  await answered()
  await leave()
  expect(asked()).toEqual(['Explain: one\n\ttwo\n\nthree\nand be brief', '/usr/bin/x: not found\n/help', 'last'])
  expect(terminal.everything()).toContain('\u001b[?2004l')
})

test.skipIf(!hasTerminal)('three quotes enclose a message of several lines', async () => {
  const { terminal, asked, answered, leave } = await talk()
  terminal.types(`"""one${enter}`)
  await terminal.sees('... ')
  terminal.types(`/exit${enter}two"""${enter}`)
  await answered()
  terminal.types(`"""all of it"""${enter}`)
  await answered()
  await leave()
  expect(asked()).toEqual(['one\n/exit\ntwo', 'all of it'])
})

test.skipIf(!hasTerminal)('typed lines are in the history of the next session, pasted lines are not', async () => {
  const first = await talk()
  first.terminal.types(`remember me${enter}`)
  await first.answered()
  first.terminal.types(`${paste('a\nb')}${enter}`)
  await first.answered()
  await first.leave()
  const path = join(first.home, '.local/state/infer/chat-history')
  expect(readFileSync(path, 'utf8')).toBe('remember me\n')
  expect(statSync(path).mode & 0o077).toBe(0)

  const second = await talk(first.home)
  second.terminal.types(`${up}${enter}`)
  await second.answered()
  await second.leave()
  expect(second.asked()).toEqual(['remember me'])

  const third = await talk(first.home, ['--no-history'])
  third.terminal.types(`secret${enter}`)
  await third.answered()
  await third.leave()
  expect(readFileSync(path, 'utf8')).toBe('remember me\n')
})

test.skipIf(!hasTerminal)('Tab completes commands, models and paths', async () => {
  const { terminal, asked, answered, leave, home } = await talk()
  writeFileSync(join(home, 'notes.txt'), 'The cat is called Tom.')
  terminal.types('/mod\t')
  await terminal.sees('/model ')
  terminal.types(`oth\t${enter}`)
  await terminal.sees('other-chat')
  await terminal.sees('> ')
  terminal.types(`/file ${home}/no\t`)
  await terminal.sees('notes.txt')
  terminal.types(enter)
  await terminal.sees('notes.txt is sent with the next message')
  await terminal.sees('> ')
  terminal.types(`What is its name?${enter}`)
  await answered()
  await leave()
  expect(asked()).toEqual(['notes.txt:\n```\nThe cat is called Tom.\n```\n\nWhat is its name?'])
})

test.skipIf(!hasTerminal)('/image, /file and /save', async () => {
  const { terminal, asked, answered, leave, home } = await talk()
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVQI12P4DwABAQEAG7buVgAAAABJRU5ErkJggg==',
    'base64',
  )
  writeFileSync(join(home, 'cat.png'), png)
  writeFileSync(join(home, 'binary'), Buffer.from([1, 0, 2]))
  for (const [line, said] of [
    [`/image ${home}/none.png`, 'there is no such file'],
    [`/file ${home}/binary`, 'is not text'],
    [`/image`, 'Write: /image <file or URL>'],
    [`/image ${home}/cat.png`, 'cat.png is sent with the next message'],
  ]) {
    terminal.types(`${line}${enter}`)
    await terminal.sees(said!)
    await terminal.sees('> ')
  }
  terminal.types(`What is this?${enter}`)
  await answered()
  terminal.types(`And now?${enter}`)
  await answered()
  for (const name of ['talk.md', 'talk.json', 'talk.md']) {
    terminal.types(`/save ${home}/${name}${enter}`)
    await terminal.sees(name)
    await terminal.sees('> ')
  }
  expect(terminal.everything()).toContain(`The file ${home}/talk.md exists`)
  await leave()
  expect(asked()[0]).toEqual([
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
  ])
  expect(readFileSync(join(home, 'talk.md'), 'utf8')).toBe(
    '# Chat with tiny-chat\n\n## User\n\nWhat is this?\n\n(1 image)\n\n## Assistant\n\nan answer\n\n## User\n\nAnd now?\n\n## Assistant\n\nan answer\n',
  )
  expect(JSON.parse(readFileSync(join(home, 'talk.json'), 'utf8'))).toMatchObject({
    model: 'tiny-chat',
    messages: [{ role: 'user' }, { role: 'assistant', content: 'an answer' }, {}, {}],
  })
})
