import { type Paint, printable } from './paint.ts'

/** A part of a line and its style. The style is applied last, so that cutting never splits an escape sequence. */
export interface Span {
  text: string
  look?: keyof Paint
}
export type StyledLine = Span[]

/** Created on first use, because it loads the tables of all languages, which most output does not need. */
let segmenter: Intl.Segmenter | undefined
/**
 * Whether all characters are ASCII, lines or bars, one column each. Segmenting such text costs a hundred times more.
 */
const isPlain = (text: string): boolean => /^[\u0020-\u007e\u2500-\u259f]*$/.test(text)
/** Splits text into characters as a reader sees them. */
const charactersOf = (text: string): string[] =>
  Array.from((segmenter ??= new Intl.Segmenter()).segment(text), ({ segment }) => segment)
/** Whether a terminal uses two columns: Chinese, Japanese and Korean characters, full-width forms, emoji. */
const isWide = (character: string): boolean =>
  /^(?:\p{Emoji_Presentation}|[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6])/u.test(
    character,
  ) || /\ufe0f/.test(character)
const columnsOf = (character: string): number => (isWide(character) ? 2 : 1)

/** Returns the columns that the text needs in a terminal. */
export const lineWidth = (text: string): number =>
  isPlain(text) ? text.length : charactersOf(text).reduce((sum, character) => sum + columnsOf(character), 0)

/** Cuts text to at most `width` columns, with an ellipsis if it was cut. */
export function cutLine(text: string, width: number): string {
  if (lineWidth(text) <= width) return text
  if (width <= 0) return ''
  if (isPlain(text)) return `${text.slice(0, width - 1)}…`
  let kept = ''
  let used = 0
  for (const character of charactersOf(text)) {
    used += columnsOf(character)
    if (used > width - 1) break
    kept += character
  }
  return `${kept}…`
}

/** Cuts or pads text to exactly `width` columns. */
export const padded = (text: string, width: number, side: 'left' | 'right' = 'left'): string => {
  const shown = cutLine(text, width)
  const blank = ' '.repeat(Math.max(0, width - lineWidth(shown)))
  return side === 'left' ? shown + blank : blank + shown
}

/** Draws the line as text of at most `width` columns. */
export function drawLine(line: StyledLine, width: number, paint: Paint): string {
  let room = width
  let drawn = ''
  for (const { text, look } of line) {
    if (room <= 0) break
    const shown = cutLine(printable(text), room)
    room -= lineWidth(shown)
    drawn += look ? paint[look](shown) : shown
  }
  return drawn
}

/** Breaks a text between words into lines of at most `width` columns; a longer word gets its own line. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && lineWidth(last) + 1 + lineWidth(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
