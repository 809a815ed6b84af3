import type { Token } from 'marked'
import type { ReactNode } from 'react'
import { ownUrl } from '../addresses.ts'
import type { ShownToken } from './blocks.ts'
import { Formula } from './formula.tsx'
import { safeLink, withoutEntities } from './safe.ts'

/** What stands deeper is shown as it was written. */
export const maxDepth = 24

/** The words of a paragraph, a cell or a heading. */
export function inline(tokens: readonly Token[] | undefined, depth: number): ReactNode {
  return tokens?.map((token, at) => <Inline key={at} token={token as ShownToken} depth={depth + 1} />)
}

function Inline({ token, depth }: { token: ShownToken; depth: number }): ReactNode {
  if (depth > maxDepth) return token.raw
  switch (token.type) {
    case 'strong':
      return <strong className="font-semibold">{inline(token.tokens, depth)}</strong>
    case 'em':
      return <em>{inline(token.tokens, depth)}</em>
    case 'del':
      return <del>{inline(token.tokens, depth)}</del>
    case 'codespan':
      return <code className="bg-raised rounded px-1 font-mono text-[0.9em] break-words">{token.text}</code>
    case 'math':
      return <Formula key={token.text} tex={token.text} isDisplay={token.isDisplay} />
    case 'br':
      return <br />
    case 'link':
      return <SafeLink href={token.href}>{inline(token.tokens, depth)}</SafeLink>
    case 'image': {
      const own = ownUrl(token.href)
      if (own.startsWith('/files/'))
        return <img src={own} alt={token.text} className="border-line max-h-80 max-w-full rounded-md border" />
      return <SafeLink href={token.href}>{token.text || token.href}</SafeLink>
    }
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : withoutEntities(token.text)
    case 'escape':
      return token.text
    default:
      // HTML too: nothing of it is read.
      return token.raw
  }
}

/** A link to another page, if it leads to one; else only its words. */
function SafeLink({ href, children }: { href: string; children: ReactNode }) {
  const safe = safeLink(href)
  if (safe === undefined) return children
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow" className="text-accent break-words underline">
      {children}
    </a>
  )
}
