import { useMutation } from '@tanstack/react-query'
import { hasEnded } from '../../../api/client.ts'
import { JobStatus } from '../../../components/badge.tsx'
import { Button, TextLink } from '../../../components/button.tsx'
import { costText, countText, durationText, sentenceText } from '../../../components/format.ts'
import { Failed } from '../../../components/page.tsx'
import { TaskResult } from '../../../components/result/task-result.tsx'
import { UnfinishedImage } from '../../../components/result/unfinished-image.tsx'
import { playgroundText as text } from '../../../text/playground.ts'
import type { JobSummary } from './feed.ts'
import type { Unanswered } from './outbox.ts'
import { cancelJob } from './runs.ts'
import { useFeedJob } from './use-feed.ts'

/** A job from its creation to its result, and what it took. */
export function JobView({ summary, currency }: { summary: JobSummary; currency: string }) {
  const { data, error: unread } = useFeedJob(summary)
  const job = data ?? { ...summary, inputs: null, result: null }
  const { id, status, progress, waiting_for, error, metrics } = job
  const live = !hasEnded(job)
  const cancel = useMutation({ mutationFn: () => cancelJob(id) })
  return (
    <div className="min-w-0 space-y-3">
      <p className="flex flex-wrap items-center gap-2" role="status">
        <JobStatus status={status} />
        {live && progress !== null && progress > 0 && <span>{text.progress(Math.round(progress * 100))}</span>}
        {!live && metrics.run_ms !== null && <span>{text.inTime(durationText(metrics.run_ms))}</span>}
        <Figures job={job} currency={currency} />
        <TextLink href={`/jobs/${id}`} className="underline" label={text.openJob} />
        {live && <Button small danger busy={cancel.isPending} onClick={() => cancel.mutate()} label={text.cancel} />}
      </p>
      {live && <progress max={1} value={progress ?? undefined} aria-label={text.running} className="h-2 w-full" />}
      {live && <UnfinishedImage job={job} />}
      {live && cancel.error && <Failed failure={cancel.error} />}
      {live && waiting_for && <p className="text-muted">{sentenceText(waiting_for.detail)}</p>}
      {error && !live && <Failed failure={new Error(error.message)} />}
      {unread && <Failed failure={unread} />}
      {data?.status === 'completed' && <TaskResult result={data.result} inputs={data.inputs} />}
    </div>
  )
}

function Figures({ job: { usage, cost, metrics }, currency }: { job: JobSummary; currency: string }) {
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

interface UnansweredProps {
  submission: Unanswered
  send: () => void
  discard: () => void
}

/** A job that the server has not confirmed yet. */
export const UnansweredView = ({ submission: { message }, send, discard }: UnansweredProps) =>
  message === '' ? (
    <p role="status" className="text-muted">
      {text.sending}
    </p>
  ) : (
    <div className="space-y-2">
      <Failed failure={new Error(message)} retry={send} retryText={text.sendAgain} />
      <Button small onClick={discard} label={text.discard} />
    </div>
  )
