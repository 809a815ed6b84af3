import type { Token } from 'marked'
import { blocksOf, type ShownToken } from './blocks.ts'
import { withoutEntities } from './safe.ts'

/** Characters that are read aloud at once: the first of them are heard before the others are ready. */
const maxPiece = 1_000

/** Returns what of a text can be read aloud, in pieces: its words without marks, code and what stands between them. */
export function spokenPieces(text: string): string[] {
  const sentences = blocksOf(text).blocks.flatMap(({ token }) => sentencesOf(spoken(token)))
  const pieces: string[] = []
  for (const sentence of sentences) {
    const last = pieces.at(-1)
    if (last !== undefined && last.length + sentence.length < maxPiece)
      pieces[pieces.length - 1] = `${last} ${sentence}`
    else pieces.push(sentence)
  }
  return pieces
}

/** The sentences of a block, and parts of those that are too long. */
const sentencesOf = (words: string): string[] =>
  words
    .replaceAll(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?…:。！？])\s/u)
    .flatMap(sentence => sentence.match(new RegExp(`\\S.{0,${maxPiece - 2}}(?=\\s|$)|\\S{1,${maxPiece}}`, 'gu')) ?? [])

function spoken(given: Token | ShownToken): string {
  const token = given as ShownToken
  switch (token.type) {
    case 'code':
    case 'html':
    case 'hr':
    case 'space':
    case 'def':
    case 'checkbox':
      return ''
    case 'br':
      return '\n'
    case 'image':
    case 'codespan':
    case 'math':
    case 'escape':
      return token.text
    case 'table':
      return [token.header, ...token.rows].map(row => `${row.map(cell => all(cell.tokens)).join(', ')}.\n`).join('')
    case 'list':
      return token.items.map(item => `${ended(all(item.tokens))}\n`).join('')
    case 'heading':
      return ended(all(token.tokens ?? []))
    default:
      if ('tokens' in token && token.tokens) return all(token.tokens)
      return withoutEntities(token.text)
  }
}

const all = (tokens: readonly Token[]): string => tokens.map(spoken).join('')

/** Ends a text as a sentence, so that there is a pause behind it. */
const ended = (words: string): string => (/[\p{L}\d)]\s*$/u.test(words) ? `${words.trimEnd()}.` : words)
