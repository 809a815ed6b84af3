import { type Paint, printable } from '../paint.ts'

/** A piece of a line and its style. The style is applied last, so that cutting never splits an escape sequence. */
export interface Span {
  text: string
  look?: keyof Paint
}
export type StyledLine = Span[]

/** Made when first needed: it brings the tables of all languages along, which most of what is written here never needs. */
let segmenter: Intl.Segmenter | undefined
/** Letters of ASCII, lines and bars: each is one sign whatever stands beside it. To take such text apart costs a hundred times more. */
const isPlain = (text: string): boolean => /^[\u0020-\u007e\u2500-\u259f]*$/.test(text)
/** What a reader takes for one character each. */
const signsOf = (text: string): string[] =>
  Array.from((segmenter ??= new Intl.Segmenter()).segment(text), ({ segment }) => segment)
/** Characters for which a terminal takes two columns: Chinese, Japanese and Korean ones, full-width forms, pictures. */
const isWide = (sign: string): boolean =>
  /^(?:\p{Emoji_Presentation}|[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6])/u.test(
    sign,
  ) || /\ufe0f/.test(sign)
const columnsOf = (sign: string): number => (isWide(sign) ? 2 : 1)

/** Columns that the text takes in a terminal. */
export const widthOf = (text: string): number =>
  isPlain(text) ? text.length : signsOf(text).reduce((sum, sign) => sum + columnsOf(sign), 0)

/** At most `width` columns, with an ellipsis where something is missing. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width <= 0) return ''
  if (isPlain(text)) return `${text.slice(0, width - 1)}…`
  let kept = ''
  let used = 0
  for (const sign of signsOf(text)) {
    used += columnsOf(sign)
    if (used > width - 1) break
    kept += sign
  }
  return `${kept}…`
}

/** Exactly `width` columns. */
export const padded = (text: string, width: number, side: 'left' | 'right' = 'left'): string => {
  const shown = cut(text, width)
  const blank = ' '.repeat(Math.max(0, width - widthOf(shown)))
  return side === 'left' ? shown + blank : blank + shown
}

/** The line as text of at most `width` columns. */
export function drawLine(line: StyledLine, width: number, paint: Paint): string {
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
