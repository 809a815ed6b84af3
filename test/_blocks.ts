import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lexer, type Token, type Tokens, walkTokens } from 'marked'
import { guidesFolder } from '../bin/guides/pages.ts'

/** A fenced block of a page. ` ```yaml workflow file=story.yaml ` has the marks `workflow` and `file=story.yaml`. */
export interface Block {
  /** `jobs.md:12`: the page and the line of the opening fence. */
  at: string
  language: string
  marks: readonly string[]
  text: string
}

/** A page whose blocks are tested: README.md and every guide. */
export interface WrittenPage {
  name: string
  markdown: string
  blocks: readonly Block[]
}

export const writtenPages = (): WrittenPage[] =>
  [
    'README.md',
    ...readdirSync(guidesFolder)
      .filter(file => file.endsWith('.md'))
      .map(file => join(guidesFolder, file)),
  ].map(path => {
    const markdown = readFileSync(path, 'utf8')
    const name = path.slice(path.lastIndexOf('/') + 1)
    return { name, markdown, blocks: blocksOf(name, markdown) }
  })

/** Every fenced block, in order. */
export function blocksOf(name: string, markdown: string): Block[] {
  const found: Block[] = []
  let from = 0
  void walkTokens(lexer(markdown), (token: Token) => {
    if (token.type !== 'code') return
    const { raw, lang = '', text } = token as Tokens.Code
    // In a list the token lacks the indentation that the page has.
    const [first = ''] = raw.split('\n')
    const at = markdown.indexOf(first, from)
    from = at + first.length
    const [language = '', ...marks] = lang.split(' ').filter(Boolean)
    found.push({ at: `${name}:${markdown.slice(0, at).split('\n').length}`, language, marks, text })
  })
  return found
}

export const shells = new Set(['sh', 'bash', 'shell', 'console'])
