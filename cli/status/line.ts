import { type Paint, printable } from '../paint.ts'

/** A piece of a line and how it is painted. Painted last, so that cutting never meets an escape sequence. */
export interface Span {
  text: string
  look?: keyof Paint
}
export type Line = Span[]

const segmenter = new Intl.Segmenter()
/** Letters of ASCII, lines and bars: each is one sign whatever stands beside it. To take such text apart costs a hundred times more. */
const isPlain = (text: string): boolean => /^[\u0020-\u007e\u2500-\u259f]*$/.test(text)
/** What a reader takes for one character each. */
const signsOf = (text: string): string[] => Array.from(segmenter.segment(text), ({ segment }) => segment)
export const widthOf = (text: string): number => (isPlain(text) ? text.length : signsOf(text).length)

/** At most `width` signs, with an ellipsis where some are missing. */
export function cut(text: string, width: number): string {
  const signs = isPlain(text) ? text : signsOf(text)
  if (signs.length <= width) return text
  if (width <= 0) return ''
  const kept = signs.slice(0, width - 1)
  return `${typeof kept === 'string' ? kept : kept.join('')}…`
}

/** Exactly `width` signs. */
export const padded = (text: string, width: number, side: 'left' | 'right' = 'left'): string => {
  const shown = cut(text, width)
  const blank = ' '.repeat(Math.max(0, width - widthOf(shown)))
  return side === 'left' ? shown + blank : blank + shown
}

/** The line as text of at most `width` signs. */
export function drawLine(line: Line, width: number, paint: Paint): string {
  let room = width
  let drawn = ''
  for (const { text, look } of line) {
    if (room <= 0) break
    const shown = cut(printable(text), room)
    room -= widthOf(shown)
    drawn += look ? paint[look](shown) : shown
  }
  return drawn
}
