import { stripAnsi } from 'consola/utils'
import type { Paint } from './paint.ts'
import { cut, widthOf as signs } from './status/line.ts'

const widthOf = (text: string): number => signs(stripAnsi(text))

/**
 * Rows under a head, columns two spaces apart, without trailing spaces. Cells longer than `width` leaves room for are
 * cut with an ellipsis in the last column only, so that ids stay whole; no width means no cutting.
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
  return all
    .map((row, at) => {
      const cells = head.map((_, column) => {
        const cell = row[column] ?? ''
        if (column === last) return width > 0 && room > 8 && widthOf(cell) > room ? cut(stripAnsi(cell), room) : cell
        return cell + ' '.repeat(widths[column]! - widthOf(cell))
      })
      const line = cells.join('  ').trimEnd()
      return at === 0 ? paint.faint(line) : line
    })
    .join('\n')
}
