import { memo, useRef } from 'react'
import { BlockView } from './block-view.tsx'
import { type Block, blocksOf, noBlocks } from './blocks.ts'

interface MarkdownProps {
  text: string
  /** Whether more of it is to come. */
  growing: boolean
}

/** A text with its Markdown as elements. Nothing in it is read as HTML. While it grows, only its last block is drawn again. */
export default function Markdown({ text, growing }: MarkdownProps) {
  const before = useRef(noBlocks)
  const { blocks } = (before.current = blocksOf(text, before.current))
  return (
    <div className={`min-w-0 space-y-3 break-words ${growing ? 'growing-text' : ''}`}>
      {blocks.map((block, at) => (
        <Shown key={block.at} block={block} growing={growing && at === blocks.length - 1} />
      ))}
    </div>
  )
}

const Shown = memo(function Shown({ block, growing }: { block: Block; growing: boolean }) {
  return <BlockView token={block.token} depth={0} growing={growing} />
})
