import { useMutation } from '@tanstack/react-query'
import { Link } from 'wouter'
import { hasEnded } from '../../../api/queries.ts'
import { Badge, type BadgeKind } from '../../../components/badge.tsx'
import { Button } from '../../../components/button.tsx'
import { costText, countText, durationText } from '../../../components/format.ts'
import { Failed } from '../../../components/page.tsx'
import { TaskResult } from '../../../components/result/task-result.tsx'
import { UnfinishedImage } from '../../../components/result/unfinished-image.tsx'
import { playgroundText as text } from '../../../text/playground.ts'
import { cancelJob, type Job } from './runs.ts'

const looks: Record<Job['status'], BadgeKind> = {
  pending: 'plain',
  processing: 'active',
  completed: 'good',
  failed: 'bad',
  cancelled: 'warning',
}

/** A job from its creation to its result, and what it took. */
export function RunView({ job, currency }: { job: Job; currency: string }) {
  const { id, status, progress, waiting_for, error, metrics } = job
  const live = !hasEnded(job)
  const cancel = useMutation({ mutationFn: () => cancelJob(id) })
  return (
    <div className="space-y-3">
      <p className="flex flex-wrap items-center gap-2" role="status">
        <Badge kind={looks[status]}>{text.status[status]}</Badge>
        {live && progress !== null && progress > 0 && <span>{text.progress(Math.round(progress * 100))}</span>}
        {!live && metrics.run_ms !== null && <span>{text.inTime(durationText(metrics.run_ms))}</span>}
        <Figures job={job} currency={currency} />
        <Link href={`/jobs/${id}`} className="text-accent underline">
          {text.openJob}
        </Link>
        {live && (
          <Button small danger busy={cancel.isPending} onClick={() => cancel.mutate()}>
            {text.cancel}
          </Button>
        )}
      </p>
      {live && (
        <progress
          max={1}
          {...(progress === null ? {} : { value: progress })}
          aria-label={text.running}
          className="h-2 w-full"
        />
      )}
      {live && <UnfinishedImage job={job} />}
      {live && cancel.error && <Failed failure={cancel.error} />}
      {live && waiting_for && <p className="text-muted">{waiting_for.detail}</p>}
      {error && !live && <Failed failure={new Error(error.message)} />}
      {status === 'completed' && <TaskResult result={job.result} inputs={job.inputs} />}
    </div>
  )
}

function Figures({ job: { usage, cost, metrics }, currency }: { job: Job; currency: string }) {
  const all = usage
    ? Object.entries(text.usage).flatMap(([name, words]) => {
        const amount = usage[name as keyof typeof text.usage]
        return amount > 0 ? [words(countText(Math.round(amount * 10) / 10))] : []
      })
    : []
  if (cost !== null && cost > 0) all.push(text.cost(costText(cost, currency)))
  if (metrics.queue_ms !== null && metrics.queue_ms >= 1_000) all.unshift(text.waited(durationText(metrics.queue_ms)))
  return all.length === 0 ? null : <span className="text-muted">{all.join(' · ')}</span>
}
