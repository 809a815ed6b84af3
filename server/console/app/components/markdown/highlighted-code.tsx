import { useEffect, useState } from 'react'
import { chatText } from '../../text/chat.ts'
import { CodeBlock } from '../code.tsx'
import type { Highlight } from './highlight.tsx'

/** Characters of code that are coloured. */
const maxColoured = 50_000

interface HighlightedCodeProps {
  code: string
  /** As the text names it; empty if it does not. */
  language: string
  growing: boolean
}

let highlight: Highlight | undefined

/** Code in the colours of its language, once it is complete. The highlighter is loaded with the first code. */
export function HighlightedCode({ code, language, growing }: HighlightedCodeProps) {
  const [, setLoaded] = useState(highlight !== undefined)
  const name = language
    .trim()
    .split(/[\s{:,]/)[0]!
    .toLowerCase()
  const isColoured = name !== '' && !growing && code.length <= maxColoured
  useEffect(() => {
    if (!isColoured || highlight) return
    let isHere = true
    void import('./highlight.tsx').then(
      ({ highlighted }) => {
        highlight = highlighted
        if (isHere) setLoaded(true)
      },
      // Without its colours it is still code.
      () => {},
    )
    return () => {
      isHere = false
    }
  }, [isColoured])
  return (
    <CodeBlock code={code} label={name === '' ? chatText.code : chatText.codeIn(name)}>
      {isColoured ? highlight?.(code, name) : undefined}
    </CodeBlock>
  )
}
