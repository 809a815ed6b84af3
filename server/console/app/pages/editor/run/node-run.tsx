import { ownUrl } from '../../../components/addresses.ts'
import { Badge, statusKinds } from '../../../components/badge.tsx'
import { Progress } from '../../../components/meter.tsx'
import { Media } from '../../../components/result/media.tsx'
import { mediaIn, resultTextIn } from '../../../components/result/result-facts.ts'
import { editorText } from '../../../text/editor.ts'
import { jobsText } from '../../../text/jobs.ts'
import { type ExecutionNode } from '../../executions/use-execution.ts'
import type { Problem, ProblemCounts } from '../document/diagnostics.ts'

/** The files of this server in a result: the page loads nothing from another one. */
const ownMedia = (result: unknown) =>
  mediaIn(result)
    .map(({ kind, url }) => ({ kind, url: ownUrl(url) }))
    .filter(({ url }) => url.startsWith('/files/'))

const labels = { image: editorText.resultImage, video: editorText.resultVideo, audio: editorText.resultAudio }

/** What a node made: its pictures, videos and sounds, or its text; or why it failed. `small` is for the graph. */
export function ResultPreview({ node, small = false }: { node: ExecutionNode; small?: boolean }) {
  const { node_id: id, error, result } = node
  if (error) return <p className="text-bad border-line line-clamp-4 border-t px-3 py-2 text-xs">{error.message}</p>
  if (node.status === 'running' && typeof node.progress === 'number') return <Progress value={node.progress} />
  if (result === null || result === undefined) return null
  const media = ownMedia(result).slice(0, small ? 1 : 8)
  const text = media.length === 0 ? resultTextIn(result) : ''
  if (media.length === 0 && text === '') return null
  return (
    <div className="border-line space-y-2 border-t p-2">
      {media.map(({ kind, url }) => (
        <Media
          key={url}
          kind={kind}
          url={url}
          label={labels[kind](id)}
          // A card is dragged by its image, but not by the controls of a player.
          className={`w-full rounded object-contain ${kind === 'image' ? '' : 'nodrag'} ${small ? 'max-h-36' : 'max-h-80'}`}
          audioClass="nodrag w-full"
        />
      ))}
      {text && (
        <p className={`break-words whitespace-pre-wrap ${small ? 'line-clamp-4' : 'max-h-60 overflow-y-auto'}`}>
          {text}
        </p>
      )}
    </div>
  )
}

/** The state of a node or an execution in one word; `progress` from 0 to 1. */
export function RunBadge({
  status,
  progress,
  awaits = null,
}: {
  status: ExecutionNode['status']
  progress?: number | null
  awaits?: ExecutionNode['awaits']
}) {
  const running = status === 'running' && typeof progress === 'number'
  return (
    <Badge kind={status === 'skipped' ? 'warning' : (statusKinds[status] ?? 'plain')}>
      {awaits === null ? editorText.statuses[status] : jobsText.awaits[awaits]}
      {running && ` ${editorText.progress(Math.round(progress * 100))}`}
    </Badge>
  )
}

/** Whether a problem is an error, in one word. */
export const SeverityBadge = ({ severity }: { severity: Problem['severity'] }) => (
  <Badge kind={severity === 'error' ? 'bad' : 'warning'}>{editorText[severity]}</Badge>
)

/** The state of a node in the last run; without one the worst that is wrong with it. */
export function NodeBadge({ run, errors, warnings }: { run: ExecutionNode | undefined } & ProblemCounts) {
  if (run) return <RunBadge status={run.status} progress={run.progress} awaits={run.awaits} />
  return errors + warnings > 0 && <SeverityBadge severity={errors > 0 ? 'error' : 'warning'} />
}
