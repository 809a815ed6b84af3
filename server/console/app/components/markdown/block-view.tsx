import type { Tokens } from 'marked'
import { createElement, type ReactNode } from 'react'
import { chatText } from '../../text/chat.ts'
import type { ShownToken } from './blocks.ts'
import { Formula } from './formula.tsx'
import { HighlightedCode } from './highlighted-code.tsx'
import { inline, maxDepth } from './inline.tsx'

interface BlockViewProps {
  token: ShownToken
  depth: number
  /** Whether more of it is to come. */
  growing: boolean
}

/** A part of a text that stands alone. */
export function BlockView({ token, depth, growing }: BlockViewProps): ReactNode {
  if (depth > maxDepth) return <p className="whitespace-pre-wrap">{token.raw}</p>
  switch (token.type) {
    case 'paragraph':
      return <p>{inline(token.tokens, depth)}</p>
    case 'heading':
      return <Heading token={token} depth={depth} />
    case 'code':
      return <HighlightedCode code={token.text} language={token.lang ?? ''} growing={growing} />
    case 'blockquote':
      return (
        <blockquote className="border-line text-muted space-y-2 border-l-2 pl-3">
          {blocks(token.tokens as ShownToken[], depth, growing)}
        </blockquote>
      )
    case 'list':
      return <List token={token} depth={depth} growing={growing} />
    case 'table':
      return <Table token={token} depth={depth} />
    case 'math':
      return <Formula key={token.text} tex={token.text} isDisplay={token.isDisplay} />
    case 'hr':
      return <hr className="border-line" />
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : <p className="whitespace-pre-wrap">{token.text}</p>
    case 'checkbox':
    case 'space':
      return null
    default:
      // HTML too: nothing of it is read.
      return <p className="whitespace-pre-wrap">{token.raw}</p>
  }
}

const blocks = (tokens: readonly ShownToken[], depth: number, growing: boolean): ReactNode =>
  tokens.map((token, at) => (
    <BlockView key={at} token={token} depth={depth + 1} growing={growing && at === tokens.length - 1} />
  ))

/** The page has headings of the first and second level above. */
const Heading = ({ token, depth }: { token: Tokens.Heading; depth: number }) =>
  createElement(
    `h${Math.min(6, token.depth + 2)}`,
    { className: `font-semibold ${token.depth < 3 ? 'text-base' : 'text-sm'}` },
    inline(token.tokens, depth),
  )

function List({ token: { ordered, start, items }, depth, growing }: BlockViewProps & { token: Tokens.List }) {
  const children = items.map((item, at) => (
    <li key={at} className={item.task ? 'list-none' : ''}>
      {item.task && (
        <input
          type="checkbox"
          readOnly
          disabled
          checked={item.checked ?? false}
          aria-label={item.checked ? chatText.done : chatText.toDo}
          className="mr-2 -ml-5"
        />
      )}
      {blocks(item.tokens as ShownToken[], depth, growing && at === items.length - 1)}
    </li>
  ))
  if (!ordered) return <ul className="list-disc space-y-1 pl-6">{children}</ul>
  return (
    <ol start={Number(start) || 1} className="list-decimal space-y-1 pl-6">
      {children}
    </ol>
  )
}

const alignment = { left: 'text-left', right: 'text-right', center: 'text-center' } as const

/** A wide table scrolls, and the page does not. */
const Table = ({ token: { header, rows }, depth }: { token: Tokens.Table; depth: number }) => {
  const look = ({ align }: Tokens.TableCell) => `border-line border-b px-2 py-1 ${alignment[align ?? 'left']}`
  return (
    <div role="region" aria-label={chatText.table} tabIndex={0} className="overflow-x-auto">
      <table className="border-collapse">
        <thead>
          <tr>
            {header.map((cell, at) => (
              <th key={at} className={`font-semibold ${look(cell)}`}>
                {inline(cell.tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} className={look(cell)}>
                  {inline(cell.tokens, depth)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
