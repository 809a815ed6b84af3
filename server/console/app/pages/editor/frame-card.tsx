import { type Node, type NodeProps, NodeResizer } from '@xyflow/react'
import { memo } from 'react'
import { editorText } from '../../text/editor.ts'
import { placeFrame, setFrameText } from './document/frames.ts'
import type { Frame } from './document/workflow-document.ts'
import { useEditor } from './editor-context.ts'

interface FrameData extends Record<string, unknown> {
  frame: Frame
}
export type FrameNode = Node<FrameData, 'frame'>

/** Smallest width and height in pixels. */
const least = { minWidth: 120, minHeight: 60 }

/** A frame behind the nodes: moved with what lies in it. While it is selected its text and its size are changed. */
export const FrameCard = memo(function FrameCard({ data: { frame }, selected }: NodeProps<FrameNode>) {
  const { apply, readOnly } = useEditor()
  const isChanged = selected && !readOnly
  const text = 'block w-full resize-none bg-transparent p-3 text-base leading-snug font-medium'
  return (
    <div
      className={`size-full rounded-lg border ${selected ? 'border-accent' : 'border-line'} bg-raised/60 overflow-hidden`}
    >
      {isChanged && (
        <NodeResizer
          {...least}
          color="var(--color-accent)"
          onResizeEnd={(_, { x, y, width, height }) => apply(placeFrame(frame.index, { x, y, width, height }))}
        />
      )}
      {isChanged ? (
        <textarea
          aria-label={editorText.frameLabel}
          placeholder={editorText.frameHint}
          className={`nodrag nowheel max-h-full ${text}`}
          rows={frame.text.split('\n').length}
          value={frame.text}
          onChange={event => apply(setFrameText(frame.index, event.target.value), `frame${frame.index}`)}
        />
      ) : (
        <div className={`${text} whitespace-pre-wrap`}>{frame.text}</div>
      )}
    </div>
  )
})
