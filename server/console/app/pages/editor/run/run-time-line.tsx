import { X } from 'lucide-react'
import { IconButton } from '../../../components/button.tsx'
import { durationText } from '../../../components/format.ts'
import { editorText } from '../../../text/editor.ts'
import { TimeLine } from '../../executions/time-line.tsx'
import { useEditor } from '../editor-context.ts'
import { SizedPanel } from '../sized-panel.tsx'
import { RunBadge } from './node-run.tsx'
import type { useRun } from './run-panel.tsx'

/** Pixels of the graph that stay free above the time line. */
const leastGraph = 240

interface RunTimeLineProps {
  run: ReturnType<typeof useRun>
  /** Pixels. */
  height: number
  setHeight: (height: number) => void
}

/** When each node of the run began and ended, over the lower edge of the graph: the graph shows what they made. */
export function RunTimeLine({ run: { execution, showTimeLine }, height, setHeight }: RunTimeLineProps) {
  const { select } = useEditor()
  if (!execution) return null
  return (
    <SizedPanel
      label={editorText.timeLine}
      covers="bottom"
      handleLabel={editorText.timeLineHeight}
      size={height}
      least={96}
      most={innerHeight - leastGraph}
      setSize={setHeight}
    >
      <div className="flex items-center gap-2 px-3 py-1">
        <h2 className="font-semibold">{editorText.timeLine}</h2>
        <RunBadge status={execution.status} />
        {execution.duration_ms !== null && (
          <span className="text-muted text-xs">{durationText(execution.duration_ms)}</span>
        )}
        <span className="flex-1" />
        <IconButton icon={X} label={editorText.closeTimeLine} onClick={() => showTimeLine(false)} />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <TimeLine
          execution={execution}
          nodes={execution.nodes ?? []}
          show={select}
          className="overflow-x-auto px-3 pb-2"
        />
      </div>
    </SizedPanel>
  )
}
