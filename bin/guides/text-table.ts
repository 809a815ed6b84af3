import { stripAnsi } from 'consola/utils'
import { lineWidth } from '../../cli/terminal/styled-line.ts'

const gap = 2
const columnsOf = (text: string): number => lineWidth(stripAnsi(text))

/**
 * Draws a table of at most `width` columns: a head, a line below it, and cells that go on below themselves where they
 * are too long. Rows are set apart by an empty line where a cell takes more than one line.
 */
export function drawTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
  wrap: (text: string, width: number) => string[],
): string {
  const natural = head.map((_, column) => Math.max(...[head, ...rows].map(row => columnsOf(row[column] ?? ''))))
  const longestWord = head.map((_, column) =>
    Math.max(...[head, ...rows].flatMap(row => (row[column] ?? '').split(' ').map(columnsOf))),
  )
  const widths = fitted(natural, longestWord, width - gap * (head.length - 1))
  const draw = (row: readonly string[]): string[] => {
    const cells = widths.map((room, column) => wrap(row[column] ?? '', room))
    return Array.from({ length: Math.max(...cells.map(({ length }) => length)) }, (_, line) =>
      cells
        .map((lines, column) => {
          const text = lines[line] ?? ''
          return text + ' '.repeat(Math.max(0, widths[column]! - columnsOf(text)))
        })
        .join(' '.repeat(gap))
        .trimEnd(),
    )
  }
  const drawn = rows.map(draw)
  const apart = drawn.some(lines => lines.length > 1)
  const rule = widths.map(room => '-'.repeat(room)).join(' '.repeat(gap))
  return [...draw(head), rule, drawn.map(lines => lines.join('\n')).join(apart ? '\n\n' : '\n')].join('\n')
}

/** Takes width from the widest columns until all fit, or until a word would no longer fit its column. */
function fitted(natural: readonly number[], least: readonly number[], room: number): number[] {
  const widths = [...natural]
  for (let over = widths.reduce((sum, one) => sum + one, 0) - room; over > 0; over--) {
    const shrinkable = widths.map((width, column) => (width > least[column]! ? width : 0))
    const widest = shrinkable.indexOf(Math.max(...shrinkable))
    if (shrinkable[widest] === 0) break
    widths[widest]!--
  }
  return widths
}
