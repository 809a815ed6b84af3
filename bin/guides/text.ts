import { stripAnsi } from 'consola/utils'
import { lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { lineWidth } from '../../cli/terminal/styled-line.ts'
import { type GuidePage, linkTarget } from './pages.ts'

/** Columns of the terminal that the text is made for. */
const columns = 80

type Look = (text: string) => string
const sequence =
  (on: number, off: number): Look =>
  text =>
    text === '' ? '' : `\u001b[${on}m${text}\u001b[${off}m`
const strong = sequence(1, 22)
const faint = sequence(2, 22)
const name = sequence(36, 39)

/** The columns that a text takes; colours take none. */
const columnsOf = (text: string): number => lineWidth(stripAnsi(text))

/** Longer code may be broken between its words. */
const unbrokenCode = 40
/** Keeps words of one code span on one line; a space again in the end. */
const hardSpace = '\u00a0'

/**
 * A page as text of 80 columns with ANSI colours. Code is not wrapped. Without the colours it still shows what is a
 * heading (underlined), code (between backticks, or indented) and a link (its address follows).
 */
export function pageText({ title, body }: GuidePage): string {
  const text = [heading(title, 1), ...blocks(lexer(body), columns)].join('\n\n')
  return `${text.replaceAll(hardSpace, ' ')}\n`
}

function blocks(tokens: readonly Token[], width: number): string[] {
  return (tokens as MarkedToken[]).flatMap(token => {
    switch (token.type) {
      case 'space':
        return []
      case 'heading':
        return [heading(inline(token.tokens), token.depth)]
      case 'paragraph':
      case 'text':
        return [wrap(inline(token.tokens ?? [token]), width).join('\n')]
      case 'code':
        return [code(token)]
      case 'list':
        return [list(token, width)]
      case 'table':
        return [table(token, width)]
      case 'blockquote':
        return [indented(blocks(token.tokens, width - 2).join('\n\n'), '| ', '| ')]
      default:
        throw new Error(`A guide cannot contain ${token.type}: ${token.raw.slice(0, 60)}`)
    }
  })
}

function heading(text: string, depth: number): string {
  const line = text.replaceAll(hardSpace, ' ')
  if (depth > 2) return strong(line)
  return `${strong(line)}\n${(depth === 1 ? '=' : '-').repeat(columnsOf(line))}`
}

function code({ text, lang = '' }: Tokens.Code): string {
  const comment = /^(ts|js|json)/.test(lang) ? /(^|\s)(\/\/\s.*)$/ : /(^|\s)(#\s.*)$/
  const lines = text
    .split('\n')
    .map(line =>
      lang === '' ? line : line.replace(comment, (_, before: string, remark: string) => before + faint(remark)),
    )
  // Wide code moves to the left, because a broken line could not be copied.
  const longest = Math.max(...text.split('\n').map(lineWidth))
  const indent = ' '.repeat(Math.max(0, Math.min(4, columns - longest)))
  return indented(lines.join('\n'), indent, indent)
}

function list({ ordered, start, items, loose }: Tokens.List, width: number): string {
  return items
    .map((item, at) => {
      const mark = ordered ? `${(start || 1) + at}. ` : '- '
      const inside = blocks(item.tokens, width - mark.length)
      return indented(inside.join(item.loose ? '\n\n' : '\n'), mark, ' '.repeat(mark.length))
    })
    .join(loose ? '\n\n' : '\n')
}

function table({ header, rows }: Tokens.Table, width: number): string {
  const cells = (row: readonly Tokens.TableCell[]) => row.map(cell => inline(cell.tokens))
  const head = cells(header).map(cell => words(cell, strong))
  const whole = drawTable(head, rows.map(cells), width)
  if (whole.split('\n').every(line => columnsOf(line) <= width)) return whole
  // Code in narrow columns is broken between its words after all.
  const breakable = (row: readonly string[]) => row.map(cell => recoloured(cell.replaceAll(hardSpace, ' ')))
  return drawTable(breakable(head), rows.map(cells).map(breakable), width)
}

/** The same text where each word has the colour of the code that it is in, so that a line can be broken there. */
const recoloured = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- escape sequences are what is looked for
  text.replace(/\u001b\[36m([^\u001b]*)\u001b\[39m/g, (_, code: string) => words(code, name))

/** Inline markdown as text with colours, on one line. */
function inline(tokens: readonly Token[]): string {
  return (tokens as MarkedToken[])
    .map(token => {
      switch (token.type) {
        case 'text':
          return token.tokens ? inline(token.tokens) : token.text.replaceAll('\n', ' ')
        case 'escape':
          return token.text
        case 'codespan':
          return words(
            `\`${token.text.length <= unbrokenCode ? token.text.replaceAll(' ', hardSpace) : token.text}\``,
            name,
          )
        case 'strong':
          return words(inline(token.tokens), strong)
        case 'em':
          return inline(token.tokens)
        case 'link':
          return link(token)
        case 'image':
          return faint(`(Picture: ${token.text})`)
        case 'br':
          return ' '
        default:
          throw new Error(`A line of a guide cannot contain ${token.type}: ${token.raw.slice(0, 60)}`)
      }
    })
    .join('')
}

function link({ href, tokens }: Tokens.Link): string {
  const text = inline(tokens)
  const target = linkTarget(href)
  if (target.kind === 'here') return text
  if (target.kind === 'guide') return `${text} (${words(`infer${hardSpace}help${hardSpace}${target.topic}`, name)})`
  const url = target.kind === 'server' ? `http://127.0.0.1:8787${target.path}` : target.url
  return stripAnsi(text) === url ? text : `${text} (${url})`
}

/** Colours each word by itself, so that a line can be broken between them. */
const words = (text: string, look: Look): string =>
  text
    .split(' ')
    .map(word => look(word))
    .join(' ')

/** Lines of at most `width` columns, broken at spaces. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && columnsOf(`${last} ${word}`) <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

const indented = (text: string, first: string, rest: string): string =>
  text
    .split('\n')
    .map((line, at) => ((at === 0 ? first : rest) + line).trimEnd())
    .join('\n')

const gap = 2

/**
 * Draws a table of at most `width` columns: a head, a line below it, and cells that go on below themselves where they
 * are too long. Rows are set apart by an empty line where a cell takes more than one line.
 */
function drawTable(head: readonly string[], rows: readonly (readonly string[])[], width: number): string {
  const natural = head.map((_, column) => Math.max(...[head, ...rows].map(row => columnsOf(row[column] ?? ''))))
  const longestWord = head.map((_, column) =>
    Math.max(...[head, ...rows].flatMap(row => (row[column] ?? '').split(' ').map(columnsOf))),
  )
  const widths = fitted(natural, longestWord, width - gap * (head.length - 1))
  const draw = (row: readonly string[]): string[] => {
    const cells = widths.map((room, column) => wrap(row[column] ?? '', room))
    return Array.from({ length: Math.max(...cells.map(({ length }) => length)) }, (_, line) =>
      cells
        .map((lines, column) => {
          const text = lines[line] ?? ''
          return text + ' '.repeat(Math.max(0, widths[column]! - columnsOf(text)))
        })
        .join(' '.repeat(gap))
        .trimEnd(),
    )
  }
  const drawn = rows.map(draw)
  const apart = drawn.some(lines => lines.length > 1)
  const rule = widths.map(room => '-'.repeat(room)).join(' '.repeat(gap))
  return [...draw(head), rule, drawn.map(lines => lines.join('\n')).join(apart ? '\n\n' : '\n')].join('\n')
}

/** Takes width from the widest columns until all fit, or until a word would no longer fit its column. */
function fitted(natural: readonly number[], least: readonly number[], room: number): number[] {
  const widths = [...natural]
  for (let over = widths.reduce((sum, one) => sum + one, 0) - room; over > 0; over--) {
    const shrinkable = widths.map((width, column) => (width > least[column]! ? width : 0))
    const widest = shrinkable.indexOf(Math.max(...shrinkable))
    if (shrinkable[widest] === 0) break
    widths[widest]!--
  }
  return widths
}
