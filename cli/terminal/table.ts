import type { WriteStream } from 'node:tty'
import { stripAnsi } from 'consola/utils'
import { cutLine, lineWidth, type Paint, wrapText } from './styled-line.ts'

const widthOf = (text: string): number => lineWidth(stripAnsi(text))

/** Minimum columns for the last column; with less space the table is folded. */
const minRoom = 8

/** Columns that the last column gets before optional columns are shown, unless its texts are shorter. */
const lastColumns = 40

const widthsOf = (head: readonly string[], rows: readonly (readonly string[])[]): number[] =>
  head.map((_, column) => Math.max(...[head, ...rows].map(row => widthOf(row[column] ?? ''))))

/**
 * Returns the positions of the columns to show in a terminal of `width`: all that are not `optional`, and of the optional
 * ones, the most useful first, those that still fit.
 */
export function fittingColumns(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
  optional: readonly string[],
): number[] {
  const widths = widthsOf(head, rows)
  widths[head.length - 1] = Math.min(widths.at(-1)!, lastColumns)
  const kept = new Set([...head.keys()].filter(column => !optional.includes(head[column]!)))
  let used = [...kept].reduce((sum, column) => sum + widths[column]! + 2, -2)
  for (const name of optional) {
    const column = head.indexOf(name)
    if (used + widths[column]! + 2 > width) continue
    used += widths[column]! + 2
    kept.add(column)
  }
  return [...kept].toSorted((a, b) => a - b)
}

/** Breaks a cell into lines of at most `width` columns, each in the colour of the cell. */
function linesOf(cell: string, width: number): string[] {
  const text = stripAnsi(cell)
  if (widthOf(text) <= width) return [cell]
  const [before, after] = cell.split(text)
  return wrapText(text, width).map(line => `${before ?? ''}${line}${after ?? ''}`)
}

/**
 * Draws rows under a header, with columns two spaces apart and without trailing spaces. Only cells of the last column
 * are cut to fit `width`, or wrapped, so that ids stay whole; if that leaves too little of it, each row gets several
 * lines. Width 0 means neither.
 */
export function drawTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
  width = 0,
  wrapsLast = false,
): string {
  const all = [head, ...rows]
  const widths = widthsOf(head, rows)
  const last = head.length - 1
  const room = width - widths.slice(0, last).reduce((sum, one) => sum + one + 2, 0)
  if (width > 0 && room <= minRoom && widths[last]! > room) return foldedTable(all, widths, paint, width)
  return all
    .flatMap((row, at) => {
      const cells = head.slice(0, last).map((_, column) => {
        const cell = row[column] ?? ''
        return `${cell}${' '.repeat(widths[column]! - widthOf(cell))}  `
      })
      const cell = row[last] ?? ''
      const lines = width <= 0 ? [cell] : wrapsLast ? linesOf(cell, room) : [fitted(cell, room)]
      return lines.map((text, line) => {
        const before = line === 0 ? cells.join('') : ' '.repeat(width - room)
        const whole = (before + text).trimEnd()
        return at === 0 ? paint.faint(whole) : whole
      })
    })
    .join('\n')
}

const fitted = (cell: string, width: number): string => (widthOf(cell) > width ? cutLine(stripAnsi(cell), width) : cell)

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
            return wrapText(row[only!] ?? '', width - indent.length).map(text => before + text)
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

/** Minimum and maximum time between two drawings; the maximum keeps elapsed times current. Milliseconds. */
const drawEveryMs = 100
const tickMs = 1_000

/** Redraws lines of a terminal in place until `close`, below earlier output. */
export function openLiveLines(stderr: Pick<WriteStream, 'write'>, frame: () => readonly string[], now: () => number) {
  let drawnLines = 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let pendingDraw: NodeJS.Timeout | undefined

  /** Escape sequence that erases the lines and moves the cursor to their beginning. */
  const erased = () => (drawnLines === 0 ? '' : `\r${drawnLines > 1 ? `\u001b[${drawnLines - 1}A` : ''}\u001b[J`)
  function erase(): void {
    if (drawnLines > 0) stderr.write(erased())
    drawnLines = 0
  }
  function draw(): void {
    const lines = frame()
    const text = erased() + lines.join('\n')
    drawnLines = lines.length
    drawnAt = now()
    if (text !== '') stderr.write(text)
  }
  const timer = setInterval(draw, tickMs)

  return {
    draw,
    /** Draws now, or when the minimum time since the last drawing has passed. */
    scheduleDraw(): void {
      const restMs = drawEveryMs - (now() - drawnAt)
      if (restMs <= 0) return draw()
      pendingDraw ??= setTimeout(() => {
        pendingDraw = undefined
        draw()
      }, restMs)
    },
    /** Writes other output, to either stream, above the lines. */
    aside(write: () => void): void {
      erase()
      write()
      draw()
    },
    /** Stops drawing. Erases the lines unless `keep` is set. */
    close({ keep = false } = {}): void {
      clearInterval(timer)
      clearTimeout(pendingDraw)
      if (!keep) return erase()
      draw()
      if (drawnLines > 0) stderr.write('\n')
      drawnLines = 0
    },
  }
}
