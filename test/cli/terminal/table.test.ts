import { expect, test } from 'vitest'
import { sizeText, timeText, tookText } from '../../../cli/terminal/quantities-text.ts'
import { paintFor, plainPaint, printable } from '../../../cli/terminal/styled-line.ts'
import { drawTable, fittingColumns } from '../../../cli/terminal/table.ts'
import { openTerminal, type ProcessStreams } from '../../../cli/terminal/terminal.ts'
import { Failure } from '../../../core/failure.ts'

test('columns are as wide as their longest cell, and no line ends in spaces', () => {
  expect(
    drawTable(
      ['id', 'name'],
      [
        ['a', 'first'],
        ['long', ''],
      ],
      plainPaint,
    ),
  ).toBe('id    name\na     first\nlong')
})

test('colours do not count toward the width', () => {
  const red = '\u001b[31mab\u001b[39m'
  expect(drawTable(['x', 'y'], [[red, '1']], plainPaint)).toBe(`x   y\n${red}  1`)
})

test('only the last column is cut to the width of the terminal', () => {
  expect(drawTable(['id', 'note'], [['tok_123', 'a long explanation']], plainPaint, 20)).toBe(
    'id       note\ntok_123  a long exp…',
  )
})

test('a row that is wider than the terminal wraps, and no text is lost', () => {
  const rows = [
    ['infer/demo', 'warm', 'text-to-image text-to-video', ''],
    ['mine', 'down', 'chat', 'it does not start', ''],
  ]
  expect(drawTable(['model', 'status', 'tasks', 'note', 'empty'], rows, plainPaint, 22)).toBe(
    [
      'model       status',
      '  tasks',
      '  note',
      'infer/demo  warm',
      '  text-to-image',
      '  text-to-video',
      'mine        down',
      '  chat',
      '  it does not start',
    ].join('\n'),
  )
})

const models = {
  head: ['name', 'kind', 'licence', 'context', 'fits'],
  rows: [
    ['qwen3-coder-30b', 'code', 'Apache-2.0', '256k', 'no: needs 45.0 GiB, and 20.0 GiB of main memory are available'],
    ['llama-3.1-8b', 'chat', 'Llama 3.1', '128k', 'processor, 7.1 GiB'],
  ],
}
test.each([
  [120, ['name', 'kind', 'licence', 'context', 'fits']],
  [80, ['name', 'kind', 'licence', 'fits']],
  [74, ['name', 'kind', 'context', 'fits']],
  [65, ['name', 'kind', 'fits']],
])('in %d columns the optional columns that fit are shown, the most useful first', (width, shown) => {
  const kept = fittingColumns(models.head, models.rows, width, ['licence', 'context'])
  expect(kept.map(column => models.head[column])).toEqual(shown)
})

test('the last column wraps below itself in its colour, if that is asked for', () => {
  const red = (text: string) => `\u001b[31m${text}\u001b[39m`
  const rows = [
    ['a', 'up', red('no: needs 45 GiB of memory')],
    ['b', 'up', 'yes'],
  ]
  expect(drawTable(['id', 'state', 'fits'], rows, plainPaint, 26, true)).toBe(
    `id  state  fits\na   up     ${red('no: needs 45')}\n           ${red('GiB of memory')}\nb   up     yes`,
  )
})

test('without rows there is only the header', () => {
  expect(drawTable(['id'], [], plainPaint)).toBe('id')
})

test('missing cells are empty', () => {
  expect(drawTable(['a', 'b', 'c'], [['1']], plainPaint)).toBe('a  b  c\n1')
})

test('a pipe gets no colours, whatever the environment', () => {
  expect(paintFor(false).bad('x')).toBe('x')
})

test.each([
  ['a mark that reverses what follows', 'a\u202eb', 'ab'],
  ['an escape sequence', 'a\u001b[2Jb', 'a[2Jb'],
  ['a carriage return that would overwrite', 'safe\rbad', 'safebad'],
  ['a C1 control', 'a\u009bb', 'ab'],
  ['newlines and tabs are kept', 'a\n\tb', 'a\n\tb'],
  ['other scripts are kept', 'grüße 日本 🚀', 'grüße 日本 🚀'],
])('untrusted text cannot control the terminal: %s', (_, text, shown) => {
  expect(printable(text)).toBe(shown)
})

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [1536, '1.5 KiB'],
  [200 * 2 ** 20, '200 MiB'],
  [24 * 2 ** 30, '24.0 GiB'],
  [5000 * 2 ** 40, '5000 TiB'],
])('%i bytes are %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text)
})

test.each([
  [0, '0 ms'],
  [37.6, '38 ms'],
  [100, '0.1 s'],
  [1234, '1.2 s'],
  [9_960, '10 s'],
  [200_000, '3 min'],
])('%i ms of work are shown as %s', (ms, text) => {
  expect(tookText(ms)).toBe(text)
})

test('a time is UTC to the minute, and a missing one is a dash', () => {
  expect(timeText(Date.UTC(2027, 0, 31, 9, 5, 59))).toBe('2027-01-31 09:05Z')
  expect(timeText(null)).toBe('-')
})

test('nothing that a terminal prints has control characters of others, in a pipe or on a screen', () => {
  const evil = 'a\u001b]0;owned\u0007\u001b[2J\u001b[8m\u202eb\nfake  row'
  for (const isTTY of [true, false]) {
    let written = ''
    const stream = { isTTY, columns: 80, write: (text: string) => void (written += text) }
    const terminal = openTerminal({ stdin: {}, stdout: stream, stderr: stream, env: {} } as unknown as ProcessStreams)
    const { paint } = terminal
    terminal.table(['id', 'name', 'state'], [['tok_1', evil, paint.bad(evil)]])
    expect(written.split('\n')).toHaveLength(3)
    terminal.table(['id', 'name'], [['tok_1', evil]], { optional: ['id'] })
    terminal.print(`Revoked ${paint.name(evil)}.`)
    terminal.json({ name: `${evil}\u009b` })
    terminal.remark(evil)
    terminal.warn(evil)
    terminal.waiting(evil)
    terminal.progress(evil)
    for (const asJson of [true, false]) terminal.failed(new Failure('not_found', evil), asJson)
    // oxlint-disable-next-line no-control-regex -- matches control characters
    const own = /\u001b\[(?:1|2|22|31|32|33|36|39)m|\r\u001b\[K/g
    const rest = isTTY ? written.replaceAll(own, '') : written.replaceAll(/^\{"name".*$/gm, '')
    // oxlint-disable-next-line no-control-regex -- matches control characters
    expect(rest).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/)
  }
})
