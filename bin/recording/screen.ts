/** A piece of a row in one look. */
export interface StyledRun {
  /** The column of its first character, from 0. */
  column: number
  text: string
  bold: boolean
  faint: boolean
  /** An ANSI colour, 30 to 37 or 90 to 97; 39 is the usual one. */
  color: number
}

interface Cell {
  sign: string
  bold: boolean
  faint: boolean
  color: number
}

/** An escape sequence, one that has only begun, or a character. */
const sequences =
  // oxlint-disable-next-line no-control-regex -- escape sequences are what is read
  /\u001b\[([?\d;]*)([A-Za-z])|\u001b\][^\u0007]*\u0007|\u001b[()][A-Z0-9]|\u001b\S?[^\u0007]*$|[^]/gu

const usual = { bold: false, faint: false, color: 39 }

/**
 * A terminal as far as infer and bash use one: text, line breaks, colours, moves of the cursor, erasing. It is as high as
 * what is written to it. Other escape sequences are passed over.
 */
export function openRecordedScreen(columns: number) {
  const rows: Cell[][] = [[]]
  let row = 0
  let column = 0
  let look = { ...usual }
  let rest = ''

  const rowAt = (at: number): Cell[] => {
    while (rows.length <= at) rows.push([])
    return rows[at]!
  }
  function print(sign: string): void {
    if (column >= columns) {
      row++
      column = 0
    }
    const cells = rowAt(row)
    while (cells.length < column) cells.push({ sign: ' ', ...usual })
    cells[column++] = { sign, ...look }
  }
  function colour(codes: readonly number[]): void {
    for (const code of codes) {
      if (code === 0) look = { ...usual }
      else if (code === 1) look.bold = true
      else if (code === 2) look.faint = true
      else if (code === 22) look = { ...look, bold: false, faint: false }
      else if ((code >= 30 && code <= 37) || code === 39 || (code >= 90 && code <= 97)) look.color = code
    }
  }
  function control(letter: string, parameters: string): void {
    const numbers = parameters.split(';').map(Number)
    const [first = 0] = numbers
    const steps = Math.max(1, first)
    if (letter === 'm') colour(numbers)
    else if (letter === 'A') row = Math.max(0, row - steps)
    else if (letter === 'B') row += steps
    else if (letter === 'C') column = Math.min(columns - 1, column + steps)
    else if (letter === 'D') column = Math.max(0, column - steps)
    else if (letter === 'G') column = steps - 1
    else if (letter === 'K' && first === 0) rowAt(row).length = Math.min(rowAt(row).length, column)
    else if (letter === 'K') rowAt(row).length = 0
    else if (letter === 'J' && first === 0) {
      rowAt(row).length = Math.min(rowAt(row).length, column)
      rows.length = row + 1
    }
  }

  return {
    /** Takes bytes as a terminal would. A sequence may come in two parts. */
    write(text: string): void {
      const all = rest + text
      rest = ''
      const parts = all.matchAll(sequences)
      for (const [part, parameters, letter] of parts) {
        if (letter !== undefined) control(letter, parameters!)
        else if (part.startsWith('\u001b')) {
          if (all.endsWith(part) && part.length < 64) rest = part
        } else if (part === '\n') row++
        else if (part === '\r') column = 0
        else if (part === '\b') column = Math.max(0, column - 1)
        else if (part >= ' ') print(part)
        rowAt(row)
      }
    },
    /** What stands in each row, without spaces at its end. */
    rows(): StyledRun[][] {
      return rows.map(runsOf)
    },
  }
}

function runsOf(cells: readonly Cell[]): StyledRun[] {
  const runs: StyledRun[] = []
  for (const [column, { sign, bold, faint, color }] of cells.entries()) {
    const last = runs.at(-1)
    const isSame = last && last.bold === bold && last.faint === faint && last.color === color
    if (isSame && last.column + last.text.length === column) last.text += sign
    else runs.push({ column, text: sign, bold, faint, color })
  }
  return runs.map(run => ({ ...run, text: run.text.trimEnd() })).filter(({ text }) => text !== '')
}
