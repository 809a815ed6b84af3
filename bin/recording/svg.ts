import { openRecordedScreen, type StyledRun } from './screen.ts'

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
