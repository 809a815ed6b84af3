import { expect, test } from 'vitest'
import { openRecordedScreen, recordingSvg } from '../../../bin/recording/svg.ts'

const shown = (...written: string[]) => {
  const screen = openRecordedScreen(20)
  for (const text of written) screen.write(text)
  return screen
    .rows()
    .map(runs => runs.map(({ column, text }) => `${' '.repeat(column)}${text}`.slice(column)).join('|'))
}

test.each<[string, string[], string[]]>([
  ['lines', ['a\r\nb'], ['a', 'b']],
  ['a line that is overwritten', ['50 %\r\u001b[K100 %\r\n'], ['100 %', '']],
  ['lines that are redrawn', ['a\r\nb\r\u001b[1A\u001b[Jc'], ['c']],
  ['looks', ['\u001b[1mbold\u001b[22m \u001b[32mgreen\u001b[0m'], ['bold|green']],
  ['titles and modes', ['\u001b]0;x\u0007\u001b[?25la'], ['a']],
  ['a sequence in two parts', ['a\u001b[', '1mb'], ['a|b']],
  ['a long line', ['x'.repeat(21)], ['x'.repeat(20), 'x']],
])('%s', (_, written, rows) => expect(shown(...written)).toEqual(rows))

test('plays once, then shows the last screen, and loads nothing from elsewhere', () => {
  const svg = recordingSvg(
    [
      { at: 0, text: '$ infer ls' },
      { at: 500, text: '\r\n1 <model>' },
      { at: 9_000, text: '\r\u001b[Kdone' },
    ],
    40,
  )
  expect(svg).toContain('<g visibility="hidden"><set attributeName="visibility" to="visible" begin="0.5s" end="1.4s"/>')
  expect(svg).toContain('<g><set attributeName="visibility" to="hidden" begin="0s" end="1.4s"/>')
  expect(svg).toContain('1 &lt;model></text>')
  expect(svg.match(/https?:\/\//g)).toEqual(['http://'])
})
