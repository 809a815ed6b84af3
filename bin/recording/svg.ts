/** What a terminal was sent, and when. */
export interface SvgPiece {
  /** Milliseconds since the beginning. */
  at: number
  text: string
}

const cell = { width: 8.4, height: 19 }
const margin = 16
const bar = 30
/** Pauses in which nothing is written are no longer than this. Milliseconds. */
const longestPause = 900

const colors: Record<number, string> = {
  31: '#f47067',
  32: '#6bc46d',
  33: '#daaa3f',
  34: '#6cb6ff',
  35: '#dcbdfb',
  36: '#56d4dd',
  39: '#dfe3e8',
  90: '#8b949e',
}

/** One row as it stood from a time to another, in milliseconds; without an end it stays. */
interface Version {
  row: number
  runs: readonly StyledRun[]
  from: number
  to?: number
}

/**
 * A recording as an SVG that plays once and then shows its last screen. Where animations are not played only the last
 * screen is seen. It needs no script, no font of its own and nothing from elsewhere.
 */
export function recordingSvg(pieces: readonly SvgPiece[], columns: number): string {
  const { versions, rows } = versionsOf(shortened(pieces), columns)
  const [width, height] = [columns * cell.width + 2 * margin, rows * cell.height + 2 * margin + bar]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${round(height)}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<title>infer in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#1b1f24"/>
<g fill="#4d545c"><circle cx="20" cy="18" r="5"/><circle cx="38" cy="18" r="5"/><circle cx="56" cy="18" r="5"/></g>
${versions.map(drawn).join('\n')}
</svg>
`
}

/** Groups pieces, with longer pauses made shorter. */
function shortened(pieces: readonly SvgPiece[]): SvgPiece[] {
  let skipped = 0
  let before = 0
  return pieces.map(({ at, text }) => {
    skipped += Math.max(0, at - before - longestPause)
    before = at
    return { at: at - skipped, text }
  })
}

function versionsOf(pieces: readonly SvgPiece[], columns: number): { versions: Version[]; rows: number } {
  const screen = openRecordedScreen(columns)
  const versions: Version[] = []
  const now = new Map<number, Version>()
  let rows = 0
  for (const { at, text } of pieces) {
    screen.write(text)
    const standing = screen.rows()
    rows = Math.max(rows, standing.length)
    for (let row = 0; row < rows; row++) {
      const runs = standing[row] ?? []
      const before = now.get(row)
      if (JSON.stringify(before?.runs ?? []) === JSON.stringify(runs)) continue
      if (before) before.to = at
      now.delete(row)
      if (runs.length === 0) continue
      const version: Version = { row, runs, from: at }
      now.set(row, version)
      versions.push(version)
    }
  }
  const seen = versions.filter(({ from, to }) => to === undefined || to > from)
  return { versions: seen, rows: Math.max(...screen.rows().map((runs, row) => (runs.length > 0 ? row + 1 : 0))) }
}

function drawn({ row, runs, from, to }: Version): string {
  const y = round(bar + margin + row * cell.height + 13)
  const texts = runs.map(({ column, text, bold, faint, color }) => {
    const looks = [
      `fill="${colors[color] ?? colors[39]}"`,
      ...(bold ? ['font-weight="bold"'] : []),
      ...(faint ? ['opacity=".6"'] : []),
    ]
    return `<text x="${round(margin + column * cell.width)}" y="${y}" textLength="${round(text.length * cell.width)}" xml:space="preserve" ${looks.join(' ')}>${escaped(text)}</text>`
  })
  const shown = `<set attributeName="visibility" to="visible" begin="${seconds(from)}"${to === undefined ? '' : ` end="${seconds(to)}"`}/>`
  const hidden = `<set attributeName="visibility" to="hidden" begin="0s" end="${seconds(from)}"/>`
  return to === undefined ? `<g>${hidden}${texts.join('')}</g>` : `<g visibility="hidden">${shown}${texts.join('')}</g>`
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
const round = (number: number): string => String(Math.round(number * 10) / 10)
const seconds = (ms: number): string => `${Math.max(0.001, Math.round(ms) / 1000)}s`

/** An ANSI colour is 30 to 37 or 90 to 97; 39 is the usual one. */
const usual = { bold: false, faint: false, color: 39 }
type Cell = typeof usual & { sign: string }
/** A piece of a row in one look, with the column of its first character, from 0. */
type StyledRun = typeof usual & { column: number; text: string }

/** An escape sequence, one that has only begun, or a character. */
const sequences =
  // oxlint-disable-next-line no-control-regex -- escape sequences are what is read
  /\u001b\[([?\d;]*)([A-Za-z])|\u001b\][^\u0007]*\u0007|\u001b[()][A-Z0-9]|\u001b\S?[^\u0007]*$|[^]/gu

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
