import { Lexer, type MarkedToken, type Token } from 'marked'
import { type MathToken, mathExtensions } from './math-tokens.ts'
import { piecesOf } from './pieces.ts'

export type ShownToken = MarkedToken | MathToken

/** A part of a text that stands alone, such as a paragraph or a table. */
export interface Block {
  /** Where it begins in the text. */
  at: number
  token: ShownToken
}

/** A text with its blocks. */
export interface Blocks {
  text: string
  blocks: readonly Block[]
}

export const noBlocks: Blocks = { text: '', blocks: [] }

/** Characters of a text that is read as Markdown; a longer one is shown as it is. */
const maxText = 1_000_000

/** Characters before a block in which its empty line is looked for. */
const maxIndent = 100

/**
 * Returns the blocks of a text. If it begins with the text before, only what follows the last empty line between the blocks of
 * that is read again; the other blocks are the same objects.
 */
export function blocksOf(given: string, before: Blocks = noBlocks): Blocks {
  const text = given.replaceAll(/\r\n?/g, '\n')
  if (text === before.text) return before
  if (text.length > maxText) return { text, blocks: [{ at: 0, token: plain(text) }] }
  const blocks = text.startsWith(before.text) ? finished(before) : []
  let at = blocks.length === 0 ? 0 : before.blocks[blocks.length]!.at
  for (const piece of piecesOf(text.slice(at)))
    for (const token of piece.isPlain
      ? [plain(piece.text)]
      : new Lexer({ gfm: true, extensions: mathExtensions }).lex(piece.text)) {
      if (token.type !== 'space') blocks.push({ at, token: token as ShownToken })
      at += token.raw.length
    }
  return { text, blocks }
}

/** The blocks that stay as they are whatever follows: those before the last that begins after an empty line. */
function finished({ text, blocks }: Blocks): Block[] {
  const open = blocks.findLastIndex(({ at }) => /\n[ \t]*\n$/.test(text.slice(Math.max(0, at - maxIndent), at)))
  return blocks.slice(0, Math.max(0, open))
}

/** A text that is shown as it is. */
const plain = (text: string) => ({ type: 'text', raw: text, text, escaped: false }) satisfies Token
