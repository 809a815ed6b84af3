import { colors } from 'consola/utils'

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

/** Styles by meaning. Without a terminal, or with NO_COLOR set, each returns its text unchanged. */
export interface Paint {
  strong: (text: string) => string
  faint: (text: string) => string
  good: (text: string) => string
  warning: (text: string) => string
  bad: (text: string) => string
  name: (text: string) => string
}

const same = (text: string): string => text
export const plainPaint: Paint = { strong: same, faint: same, good: same, warning: same, bad: same, name: same }

const coloured: Paint = {
  strong: colors.bold,
  faint: colors.dim,
  good: colors.green,
  warning: colors.yellow,
  bad: colors.red,
  name: colors.cyan,
}

/**
 * Returns the styles for one stream. consola respects NO_COLOR and TERM=dumb, but enables colors in pipes when CI or
 * FORCE_COLOR is set; infer never writes colors to a pipe.
 */
export const paintFor = (isTerminal: boolean): Paint => (isTerminal ? coloured : plainPaint)

/** Control characters, and marks that reverse the reading direction of what follows. */
const controls = String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]`
const control = new RegExp(controls, 'g')
/** The same, and before them the escape sequences of `coloured`. */
const controlOrStyle = new RegExp(String.raw`\u001b\[(?:1|2|22|31|32|33|36|39)m|${controls}`, 'g')

/** Removes control characters, with which external text such as a model's answer could control the terminal. */
export const printable = (text: string): string => text.replace(control, '')

/** The same for text with styles of `paint`, which stay. */
export const printableStyled = (text: string, paint: Paint): string =>
  paint === plainPaint ? printable(text) : text.replace(controlOrStyle, found => (found.length > 1 ? found : ''))

/** The JSON of a value, with control characters that JSON allows in strings as `\\u009b`. */
export const printableJson = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replaceAll(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
