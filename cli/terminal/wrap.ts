import { lineWidth } from './styled-line.ts'

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
