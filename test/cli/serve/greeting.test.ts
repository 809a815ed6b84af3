import { expect, test } from 'vitest'
import { greeting, plainGreeting, type Started } from '../../../cli/serve/greeting.ts'
import { logLine } from '../../../cli/serve/log-line.ts'
import { plainPaint } from '../../../cli/terminal/styled-line.ts'

const started: Started = {
  version: '1.2.3',
  own: { line: args => `infer ${args}`, folder: undefined },
  url: 'http://127.0.0.1:8787',
  urls: ['http://127.0.0.1:8787'],
  tokenPath: '/data/root-token',
  firstStart: undefined,
  models: [{ id: 'm', tasks: ['std/chat-completion'], description: 'A toy.' }],
}
const first: Started = { ...started, firstStart: { organizationId: 'org_1', secret: 'sk-infer-abc' } }

test('a later start prints the address, the models and commands to try, and no secret', () => {
  const text = greeting(started, plainPaint)
  expect(text).toContain('infer 1.2.3 is ready at http://127.0.0.1:8787')
  expect(text).toContain('m  std/chat-completion')
  expect(text).toContain('A toy.')
  expect(text).toContain('curl http://127.0.0.1:8787/std/v1/chat/completions')
  expect(text).not.toContain('sk-infer')
})

test('a link to the console is in the text for a terminal only', () => {
  const linked = { ...started, consoleLink: 'http://127.0.0.1:8787/console/sign-in#code=abc' }
  expect(greeting(linked, plainPaint)).toContain('Console  http://127.0.0.1:8787/console/sign-in#code=abc')
  expect(greeting(started, plainPaint)).not.toContain('Console')
  expect(plainGreeting(linked)).not.toContain('code=')
})

test('a server that other machines reach prints an address that is not loopback', () => {
  const lan = { ...started, urls: ['http://127.0.0.1:8787', 'http://192.0.2.2:8787'] }
  expect(greeting(lan, plainPaint)).toContain('INFER_URL=http://192.0.2.2:8787 INFER_TOKEN=… infer chat')
  expect(greeting(started, plainPaint)).not.toContain('another machine')
})

test('with a console it prints a link that signs in, in a terminal only', () => {
  const link = 'http://127.0.0.1:8787/console/sign-in#code=abc'
  const text = greeting({ ...started, consoleLink: link }, plainPaint)
  expect(text).toContain(`Console  ${link}`)
  expect(text).toContain('Later: infer console')
  expect(plainGreeting({ ...started, consoleLink: link })).not.toContain('code=')
})

test('the first start shows the secret once', () => {
  expect(greeting(first, plainPaint).split('sk-infer-abc')).toHaveLength(2)
})

test('the text about models fits the width, and commands are not split', () => {
  const tasks = Array.from({ length: 9 }, (_, at) => `slug/a-task-with-a-name-${at}`)
  const many = { ...first, models: [{ id: 'draws', tasks, description: 'It draws a picture. '.repeat(9).trim() }] }
  const lines = greeting(many, plainPaint, 80).split('\n')
  expect(lines.filter(line => line.length > 80 && !/^ {2}\S/.test(line))).toEqual([])
  expect(lines.filter(line => line.startsWith(' '.repeat(9))).length).toBeGreaterThan(4)
})

test('without models it says how to add one', () => {
  expect(greeting({ ...started, models: [] }, plainPaint)).toContain('infer model add')
})

test('in a pipe each fact has a line', () => {
  expect(plainGreeting(first)).toBe(
    'ready http://127.0.0.1:8787\nmodel m std/chat-completion\nroot-token /data/root-token\norganization org_1',
  )
  expect(plainGreeting(first)).not.toContain('sk-infer')
})

test.each([
  [
    'time, level, message and fields',
    { time: '2026-01-01T10:20:30.000Z', level: 'info', message: 'Ready', url: 'http://x', models: 3 },
    '10:20:30 info  Ready  url=http://x models=3\n',
  ],
  [
    'the cause below, indented',
    { time: '2026-01-01T10:20:30.000Z', level: 'error', message: 'Bad', cause: 'Error: x\n    at y' },
    '10:20:30 error Bad\n    Error: x\n        at y\n',
  ],
  [
    'no control characters',
    { time: '2026-01-01T10:20:30.000Z', level: 'odd', message: 'a\u001b[2Jb' },
    '10:20:30 odd   a[2Jb\n',
  ],
])('a log line for a person: %s', (_, entry, line) => {
  expect(logLine(`${JSON.stringify(entry)}\n`, plainPaint)).toBe(line)
})

test('text that is not a log line is printed unchanged', () => {
  expect(logLine('plain text\n', plainPaint)).toBe('plain text\n')
})
