import { stripAnsi } from 'consola/utils'
import type { Paint } from './paint.ts'
import { cut, widthOf as signs } from './status/styled-line.ts'
import { wrapped } from './wrap.ts'

const widthOf = (text: string): number => signs(stripAnsi(text))

/** Minimum columns for the last column; with less space the table is folded. */
const minRoom = 8

/**
 * Draws rows under a header, with columns two spaces apart and without trailing spaces. Only cells of the last column
 * are cut to fit `width`, so that ids stay whole; if that leaves too little of it, each row gets several lines. Width 0
 * means no cutting.
 */
export function drawTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
  width = 0,
): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map(row => widthOf(row[column] ?? ''))))
  const last = head.length - 1
  const room = width - widths.slice(0, last).reduce((sum, one) => sum + one + 2, 0)
  if (width > 0 && room <= minRoom && widths[last]! > room) return foldedTable(all, widths, paint, width)
  return all
    .map((row, at) => {
      const cells = head.map((_, column) => {
        const cell = row[column] ?? ''
        if (column === last) return width > 0 && widthOf(cell) > room ? cut(stripAnsi(cell), room) : cell
        return cell + ' '.repeat(widths[column]! - widthOf(cell))
      })
      const line = cells.join('  ').trimEnd()
      return at === 0 ? paint.faint(line) : line
    })
    .join('\n')
}

/**
 * Draws rows that are wider than the terminal over several lines, with as many columns per line as fit. Cuts nothing.
 */
function foldedTable(
  all: readonly (readonly string[])[],
  widths: readonly number[],
  paint: Paint,
  width: number,
): string {
  const indent = '  '
  const lines: number[][] = [[]]
  let used = 0
  // An empty column would only add a line to the header.
  const hasValues = (column: number) => all.slice(1).some(row => (row[column] ?? '') !== '')
  for (const [column, own] of widths.entries()) {
    if (!hasValues(column)) continue
    if (lines.at(-1)!.length > 0 && used + own > width) {
      lines.push([])
      used = indent.length
    }
    lines.at(-1)!.push(column)
    used += own + 2
  }
  return all
    .flatMap((row, at) =>
      lines
        .flatMap((columns, line) => {
          const before = line === 0 ? '' : indent
          const [only] = columns
          if (columns.length === 1 && line > 0)
            return wrapped(row[only!] ?? '', width - indent.length).map(text => before + text)
          const cells = columns.map(column => {
            const cell = row[column] ?? ''
            return cell + ' '.repeat(widths[column]! - widthOf(cell))
          })
          return [before + cells.join('  ').trimEnd()]
        })
        .filter((text, line) => line === 0 || text.trim() !== '')
        .map(text => (at === 0 ? paint.faint(text) : text)),
    )
    .join('\n')
}
